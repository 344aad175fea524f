"""Hooks for child processes."""
