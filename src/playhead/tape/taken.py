"""Which segments of a run are sealed already, for a process that is about to write one more. Knows
the index; nothing that would cost a recorded program its start.
"""

from __future__ import annotations

import os

from playhead.encoding.jsonbytes import loads
from playhead.tape.names import INDEX_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def sealed_segments(run: Path | str) -> dict[str, int]:
    """Name → last seq of each sealed segment; empty where nothing is sealed, or nothing is known."""
    try:
        with open(os.path.join(run, INDEX_FILE), encoding="utf-8") as file:
            members = loads(file.read())
        return {str(one["name"]): int(one["last"]) for one in members["segments"]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}
