"""Verbs of shared stores: push, pull, and pruning there."""
