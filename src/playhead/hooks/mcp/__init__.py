"""Hooks for MCP clients."""
