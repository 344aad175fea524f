"""Pair the calls of a replay with the calls on the tape."""
