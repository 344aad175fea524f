"""One line to the person who runs the program. Knows that there may be nobody to hear it."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """On stderr, and not through `warnings`: a host may turn those into errors."""
    try:
        sys.stderr.write(f"playhead: {message}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return  # closed, broken, or none at all
