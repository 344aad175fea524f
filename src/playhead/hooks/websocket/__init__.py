"""Hooks for WebSocket clients."""
