"""Hooks for clock, entropy and waiting."""
