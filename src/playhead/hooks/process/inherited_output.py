"""What a child wrote to the output that it has from us: where in the run's own output it lies.

Nothing stands between the child and the pipe or terminal. Who passes the command's output on keeps it
all; here is only noted from where to where it is this child's. That can be told of children that the
program waits for and does nothing else meanwhile. Knows when that is so; not what was written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from playhead.hooks.process.flight import Flight
from playhead.recording.deck import Crossing, Piece
from playhead.tape.output_position import OutputGauge

# Whether the program waits for the process that is started here: `run`, `call`, `system`.
waited_for: ContextVar[bool] = ContextVar("playhead_process_waited_for", default=False)

_gauge: tuple[Path, OutputGauge] | None = None
_running: list[Inherited] = []


class Inherited:
    """The output of one child, by where it begins and ends."""

    def __init__(self, run: Path, streams: dict[str, int]) -> None:
        self._gauge = _gauge_of(run)
        self._began: dict[str, tuple[str, int]] = {}
        for stream, fd in streams.items():
            at = self._gauge.read(fd)
            # `2>&1`: one pipe for both, of which nobody can say which is which.
            if at is not None and at[0] not in [name for name, _ in self._began.values()]:
                self._began[stream] = at
        self._fds = streams
        # Two at a time cannot be told apart.
        self._alone = not _running
        for other in _running:
            other._alone = False
        _running.append(self)

    def end(self) -> dict[str, Any]:
        """Facts for the outcome: `{"wrote": {"stdout": ["stdout", FROM, TO]}}`."""
        _running.remove(self)
        wrote: dict[str, Any] = {}
        for stream, (name, start) in self._began.items() if self._alone else ():
            now = self._gauge.read(self._fds[stream])
            if now is not None and now[1] > start:
                wrote[stream] = [name, start, now[1]]
        return {"wrote": wrote} if wrote else {}


def of(crossing: Crossing) -> Inherited:
    """Of a process that has both from us, and is waited for: the caller says when it has ended."""
    return Inherited(crossing.deck.recorder.run, _streams("inherited", "inherited"))


def print_again(pieces: Iterable[Piece]) -> None:
    """In a replay: what the child had written to our own streams."""
    for piece in pieces:
        fd = {"stdout": 1, "stderr": 2}.get(piece.stream)
        left = piece.data if fd is not None else b""
        while left and fd is not None:
            left = left[os.write(fd, left) :]


def expect_inherited(flight: Flight, crossing: Crossing, stdout: str, stderr: str) -> None:
    """Before a process starts whose streams are of these kinds."""
    streams = _streams(stdout, stderr)
    if waited_for.get() and streams:
        inherited = Inherited(crossing.deck.recorder.run, streams)
        flight.at_exit(lambda flight: flight.add_facts(inherited.end()))


def _streams(stdout: str, stderr: str) -> dict[str, int]:
    kinds = (("stdout", stdout, 1), ("stderr", stderr, 2))
    return {name: fd for name, kind, fd in kinds if kind == "inherited"}


def _gauge_of(run: Path) -> OutputGauge:
    global _gauge  # noqa: PLW0603  one a process
    if _gauge is None or _gauge[0] != run:
        _gauge = (run, OutputGauge(run))
    return _gauge[1]
