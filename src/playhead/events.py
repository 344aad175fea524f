"""What is on a tape: the event, its closed vocabulary of kinds, and references between events.

Data only. Time, ids and sequence numbers are passed in; nothing here reads a clock or a file.
"""

from __future__ import annotations

from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from playhead.event import Boundary as Boundary  # noqa: PLC0414  handed on: see __getattr__
    from playhead.event import Damage as Damage  # noqa: PLC0414
    from playhead.event import Effect as Effect  # noqa: PLC0414
    from playhead.event import Event as Event  # noqa: PLC0414
    from playhead.event import Level as Level  # noqa: PLC0414
    from playhead.event import Ref as Ref  # noqa: PLC0414
    from playhead.event import Status as Status  # noqa: PLC0414

LEVELS: tuple[Level, ...] = ("minimal", "standard", "full")

BOUNDARIES: tuple[Boundary, ...] = (
    "llm",
    "http",
    "process",
    "tool",
    "mcp",
    "state",
    "clock",
    "entropy",
)

# The closed vocabulary. Every other word is a user's own kind, or one from a later version of
# Playhead: both are kept and written back as they were.
RUN_START = "run.start"
RUN_END = "run.end"
SEGMENT_START = "segment.start"
SEGMENT_END = "segment.end"
CALL = "call"
CHUNK = "chunk"
OUTCOME = "outcome"
TURN_START = "turn.start"
TURN_END = "turn.end"
SEAM = "seam"
RETRIEVAL = "retrieval"
SNAPSHOT = "snapshot"
OUTPUT = "output"
AMBIENT = "ambient"
ORDER = "order"
HOOK = "hook"
HOLE = "hole"
GAP = "gap"
DIVERGENCE = "divergence"
# The files of a run: a folder at the start, and what changed in it.
WORKSPACE = "workspace"
FILES = "files"
KINDS = frozenset(
    {
        RUN_START,
        RUN_END,
        SEGMENT_START,
        SEGMENT_END,
        CALL,
        CHUNK,
        OUTCOME,
        TURN_START,
        TURN_END,
        SEAM,
        RETRIEVAL,
        SNAPSHOT,
        OUTPUT,
        AMBIENT,
        ORDER,
        HOOK,
        HOLE,
        GAP,
        DIVERGENCE,
        WORKSPACE,
        FILES,
    }
)

_event = Later("playhead.event")
_THERE = frozenset({"Boundary", "Damage", "Effect", "Event", "Level", "Ref", "Status"})


def __getattr__(name: str) -> Any:
    """Types, when they are first asked for: see `playhead.event`."""
    if name not in _THERE:
        raise AttributeError(f"module 'playhead.events' has no attribute {name!r}")
    value = globals()[name] = getattr(_event, name)
    return value
