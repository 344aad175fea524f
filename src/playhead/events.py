"""What is on a tape: the event, its closed vocabulary of kinds, and references between events.

Data only. Time, ids and sequence numbers are passed in; nothing here reads a clock or a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Union

from playhead.later import Later

if TYPE_CHECKING:
    from playhead.event import Damage as Damage  # noqa: PLC0414  for mypy: it is exported from here
    from playhead.event import Event as Event  # noqa: PLC0414  likewise

Level = Literal["minimal", "standard", "full"]
LEVELS: tuple[Level, ...] = ("minimal", "standard", "full")

Status = Literal["running", "ok", "failed", "interrupted"]

Boundary = Literal["llm", "http", "process", "tool", "mcp", "state", "clock", "entropy"]
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

Effect = Literal["read", "write", "irreversible"]

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
HOOK = "hook"
HOLE = "hole"
GAP = "gap"
DIVERGENCE = "divergence"
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
        HOOK,
        HOLE,
        GAP,
        DIVERGENCE,
    }
)

# An event of the same segment by its seq, or of another by "SEGMENT:SEQ".
Ref = Union[int, str]  # noqa: UP007  evaluated by 3.10, too


_event = Later("playhead.event")


def __getattr__(name: str) -> Any:
    """`Event` and `Damage` when they are first asked for: see `playhead.event`."""
    if name not in ("Event", "Damage"):
        raise AttributeError(f"module 'playhead.events' has no attribute {name!r}")
    value = globals()[name] = getattr(_event, name)
    return value
