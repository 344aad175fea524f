"""Fences: keep a replayed program away from the network."""
