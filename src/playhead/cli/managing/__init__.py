"""Verbs that take care of runs: tag, note, rename, keep, prune, clean, seal, verify, repair, reindex."""
