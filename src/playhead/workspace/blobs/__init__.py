"""Content by its hash: the pool of a store, its packs, and safe reading of files."""
