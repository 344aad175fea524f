"""Hooks for connections that no other hook claims. Each is recorded as a conversation of bytes."""
