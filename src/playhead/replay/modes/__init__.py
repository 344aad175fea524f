"""Modes of the deck: replay, mixed, fork, fault."""
