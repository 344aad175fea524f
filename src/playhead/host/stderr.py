"""Print one line to the user on stderr, if the process has a stderr."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """Print one line on stderr, and not through `warnings`: a host may turn those into errors."""
    try:
        sys.stderr.write(f"playhead: {message}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return  # closed, broken or missing
