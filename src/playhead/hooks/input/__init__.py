"""Hooks for the input of a run: stdin, passwords that a person types, signals, and connections to its servers."""
