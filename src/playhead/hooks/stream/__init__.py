"""Connections that no other hook claims: each is taped as a conversation of bytes."""
