"""Sealed tapes: one compressed file and its index."""
