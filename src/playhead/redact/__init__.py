"""Secrets are taken out before anything is written. See `redactor` (how) and `shapes` (what)."""

from playhead.redact.redactor import Redactor, SafeKeys

__all__ = ["Redactor", "SafeKeys"]
