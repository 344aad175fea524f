"""Content by its hash: the pool of a store, its packs, and how a file is read safely."""
