"""Verbs that show runs: list, search, stats, show, play, open, ui, serve, export, diff, events."""
