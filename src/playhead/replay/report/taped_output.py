"""What children wrote to the output that they had from the program, for those that are taped.

The tape holds the command's output as one stream, and for such a child from where to where it is its
own. Knows outputs and offsets; not processes.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import Any

from playhead.event import Event
from playhead.recording.calls import Piece, Taped
from playhead.recording.chunks import as_bytes
from playhead.tape.reader import Tape


class Printed:
    """All that a run printed on one stream, found by position."""

    def __init__(self, tape: Tape, outputs: list[Event], stream: str) -> None:
        self._starts: list[int] = []
        self._parts: list[tuple[int, bytes]] = []
        at = 0
        for event in outputs:
            data = tape.whole(event).data
            if not isinstance(data, dict) or data.get("stream") != stream:
                continue
            raw = as_bytes(data)
            size = int(data.get("bytes") or len(raw))
            self._starts.append(at)
            self._parts.append((size, raw))
            at += size

    def between(self, start: int, end: int) -> bytes:
        """A part with a secret taken out is another length than it was: it counts where it begins."""
        found = b""
        for index in range(max(0, bisect_right(self._starts, start) - 1), len(self._starts)):
            at, (size, raw) = self._starts[index], self._parts[index]
            if at >= end:
                break
            if len(raw) == size:
                found += raw[max(0, start - at) : end - at]
            elif at >= start:
                found += raw
        return found


def with_output(
    taped: Taped, printed: dict[str, Printed], tape: Tape, outputs: list[Event]
) -> Taped:
    """The answer with what the child had printed itself. `printed` keeps what was looked up before."""
    wrote: Any = taped.facts.get("wrote")
    if not isinstance(wrote, dict):
        return taped
    pieces = list(taped.pieces)
    for stream, (name, start, end) in wrote.items():
        if name not in printed:
            printed[name] = Printed(tape, outputs, name)
        data = printed[name].between(int(start), int(end))
        if data:
            pieces.append(Piece(stream=str(stream), data=data, at_ns=0))
    return replace(taped, pieces=pieces)
