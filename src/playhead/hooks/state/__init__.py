"""Hooks for state stores."""
