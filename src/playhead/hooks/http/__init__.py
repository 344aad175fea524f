"""Hooks for HTTP clients."""
