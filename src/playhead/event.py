"""The event itself, damage to it, and the types of what stands in it: what is read from a tape. Data only.

Apart from `events`, which forwards to here: a recorder writes lines without ever making an `Event`, and
dataclasses and typing would cost every process of a run 15 ms at its start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Union

from playhead.events import CHUNK, KINDS

Level = Literal["minimal", "standard", "full"]
Status = Literal["running", "ok", "failed", "interrupted"]
Boundary = Literal["llm", "http", "process", "tool", "mcp", "state", "clock", "entropy"]
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


def brought_along(outcome: Event) -> list[Event]:
    """The chunks that were not on the tape yet when the call ended: its outcome has them in `streams`.

    The data must be whole (see `Tape.whole`).
    """
    told = outcome.data.get("streams") if isinstance(outcome.data, dict) else None
    if not isinstance(told, list):
        return []
    return [
        replace(outcome, kind=CHUNK, data={**one, "call": outcome.data.get("call")})
        for one in told
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
        return f"{self.segment} line {self.line} (byte {self.offset}): {self.why}"
