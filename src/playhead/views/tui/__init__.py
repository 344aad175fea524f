"""Runs on a terminal that answers: find, read, play, compare. See `app`."""
