"""Shared stores: push runs into an object store, and pull them from there."""
