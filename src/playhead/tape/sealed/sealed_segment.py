"""The facts of a segment's first event, as the index of a sealed tape stores them.

Separate from `seal_index`, because the reader of a plain tape needs this module and nothing else of `sealed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from playhead.events import SEGMENT_START, Event
from playhead.tape.layout import FORMAT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSegment:
    """One segment of the sealed file."""

    name: str
    run: str = ""
    format: int = FORMAT_VERSION
    generation: int = 0
    pid: int = 0
    host: str = ""
    # Distinguishes the process from a later one with the same pid.
    birth: str = ""
    # Of its first event.
    mono: int = 0
    first: int = 0
    last: int = 0
    events: int = 0
    bytes: int = 0


def first_of(name: str, event: Event) -> SealedSegment:
    """Return the facts of a segment's first event."""
    data = event.data if event.kind == SEGMENT_START and not event.user else None
    said = data if isinstance(data, dict) else {}
    return SealedSegment(
        name=name,
        run=_text(said.get("run")),
        host=_text(said.get("host")),
        birth=_text(said.get("birth")),
        format=said["format"] if type(said.get("format")) is int else FORMAT_VERSION,
        generation=said["generation"] if type(said.get("generation")) is int else 0,
        pid=event.pid,
        mono=event.mono,
        first=event.seq,
        last=event.seq,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
