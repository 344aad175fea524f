"""The event, damage to a tape, and the types of an event's members: the types that a reader of tapes returns. Data
only.

Import these names from `playhead.events`, which loads this module when they are first used: a recorder never makes an
`Event`, and dataclasses and typing would cost every recorded process 15 ms at its start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Union

from playhead.events import CHUNK, KINDS

Level = Literal["minimal", "standard", "full"]
Status = Literal["running", "ok", "failed", "interrupted"]
Boundary = Literal[
    "llm",
    "http",
    "grpc",
    "sql",
    "process",
    "tool",
    "mcp",
    "state",
    "input",
    "stream",
    "clock",
    "entropy",
]
Effect = Literal["read", "write", "irreversible"]

# An event of the same segment by its seq, or of another by "SEGMENT:SEQ".
Ref = Union[int, str]  # noqa: UP007  evaluated by 3.10, too


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
    # A user's own event whose kind has the name of one of ours.
    user: bool = False
    # Only if a pid was used twice in one run: the name of the segment.
    seg: str | None = None
    data: Any = None

    @property
    def segment(self) -> str:
        return self.seg or str(self.pid)

    @property
    def ref(self) -> str:
        """The name of this event in its run, unique across segments."""
        return f"{self.segment}:{self.seq}"

    @property
    def ours(self) -> bool:
        """Return whether `kind` is one of the closed vocabulary, and Playhead itself wrote it."""
        return self.kind in KINDS and not self.user

    def absolute(self, ref: Ref | None) -> str | None:
        """Return `parent` or `cause` of this event as a name that is unique across segments."""
        return f"{self.segment}:{ref}" if isinstance(ref, int) else ref


def brought_along(outcome: Event) -> list[Event]:
    """Return the chunks that an outcome carries in `streams`: those not written before the call ended.

    The data must be whole (see `Tape.whole`).
    """
    streams = outcome.data.get("streams") if isinstance(outcome.data, dict) else None
    if not isinstance(streams, list):
        return []
    return [
        replace(outcome, kind=CHUNK, data={**one, "call": outcome.data.get("call")})
        for one in streams
        if isinstance(one, dict)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A place in a tape that cannot be read as it was written."""

    segment: str
    line: int
    offset: int
    why: str

    def __str__(self) -> str:
        if not self.line:
            return f"{self.segment}: {self.why}"  # a whole file
        return f"{self.segment} line {self.line} (byte {self.offset}): {self.why}"
