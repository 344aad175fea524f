"""Hooks for tools of agent frameworks."""
