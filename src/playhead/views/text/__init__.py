"""Runs as text on a terminal, or plain in a pipe."""
