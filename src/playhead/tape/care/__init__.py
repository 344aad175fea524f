"""Verify and repair tapes."""
