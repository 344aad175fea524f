"""Which segments of a run are sealed already, for a process that is about to write one more. Knows
the index; nothing that would cost a recorded program its start.
"""

from __future__ import annotations

import json
from pathlib import Path

from playhead.tape.format import INDEX_FILE


def sealed_segments(run: Path) -> dict[str, int]:
    """Name → last seq of each sealed segment; empty where nothing is sealed, or nothing is known."""
    try:
        members = json.loads((run / INDEX_FILE).read_bytes())
        return {str(one["name"]): int(one["last"]) for one in members["segments"]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}
