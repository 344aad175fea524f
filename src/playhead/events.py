"""What is on a tape: the event, its closed vocabulary of kinds, and references between events.

Data only. Time, ids and sequence numbers are passed in; nothing here reads a clock or a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Union

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
Ref = Union[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a tape. The five questions: who (who, lane), what (kind, data), when (wall, mono,
    seq), where (at, pid, thread; the host is in the segment's first event), why (parent, cause, why).
    """

    seq: int
    kind: str
    wall: int
    mono: int
    pid: int
    thread: int = 0
    lane: str = "main"
    at: str | None = None
    who: str | None = None
    parent: Ref | None = None
    cause: Ref | None = None
    why: str | None = None
    # A user's own event whose kind happens to be one of ours.
    user: bool = False
    # Only where a pid was used twice in one run: the name of the segment.
    seg: str | None = None
    data: Any = None

    @property
    def segment(self) -> str:
        return self.seg or str(self.pid)

    @property
    def ref(self) -> str:
        """The one name that this event has in its run."""
        return f"{self.segment}:{self.seq}"

    @property
    def ours(self) -> bool:
        """Whether `kind` is one of the closed vocabulary, and Playhead itself wrote it."""
        return self.kind in KINDS and not self.user

    def absolute(self, ref: Ref | None) -> str | None:
        """`parent` or `cause` of this event as a name that holds across segments."""
        return f"{self.segment}:{ref}" if isinstance(ref, int) else ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A place in a tape that cannot be read as it was written."""

    segment: str
    line: int
    offset: int
    why: str

    def __str__(self) -> str:
        return f"{self.segment} line {self.line} (byte {self.offset}): {self.why}"
