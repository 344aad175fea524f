"""How far somebody has read a tape. Pure; knows segments and seqs.

`4711:120,4712:7`: the last seq of each segment that was told. A plain number means so many events in
the order of the tape, which holds as long as no other process adds to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from playhead.views.web.api.said import Problem

PATTERN = r"^(\d{1,12}|[^:,\s]{1,80}:\d{1,15}(,[^:,\s]{1,80}:\d{1,15})*)$"
LONGEST = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """`told` wins where both are there."""

    told: Mapping[str, int] = field(default_factory=dict)
    skip: int = 0


def parse_cursor(text: str | None) -> Cursor:
    if not text:
        return Cursor()
    if text.isdigit():
        return Cursor(skip=int(text[:12]))
    told: dict[str, int] = {}
    for part in text[:LONGEST].split(","):
        segment, _, seq = part.rpartition(":")
        if not segment or not seq.isdecimal() or not seq.isascii():
            raise Problem(400, f"{text[:80]!r} is no position on a tape.", "Use `next` as it came.")
        told[segment] = int(seq[:15])
    return Cursor(told=told)


def write_cursor(told: Mapping[str, int]) -> str:
    return ",".join(f"{segment}:{seq}" for segment, seq in told.items())
