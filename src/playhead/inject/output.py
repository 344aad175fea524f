"""What a program prints on a terminal, as it is printed. Knows Python's own streams; not pipes.

A terminal cannot be stood in for: a program asks it for its size, its modes and its process group.
So it is left to the program, and Python's streams tell what they write to it. Their objects stay the
very same; only the innermost `write` is ours.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

from playhead import clock, events
from playhead.chunks import ChunkBuffer, as_text
from playhead.recorder import Recorder


class OutputBuffer(ChunkBuffer):
    """Pieces of output on their way to the tape: those within a few milliseconds share an event."""

    __slots__ = ()

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder, 0, clock.mono_ns())

    def _write(self, now: int) -> None:
        raw = b"".join(self._pieces)
        self._pieces, self._times, self._size, self._last = [], [], 0, now
        data = {"stream": self._stream, "bytes": len(raw), **as_text(raw)}
        self._recorder.add(events.OUTPUT, data, '""')


class Tee:
    """Stands in the innermost `write` of those standard streams that are one of `terminals`."""

    def __init__(self, recorder: Recorder, terminals: tuple[int, ...]) -> None:
        self._recorder = recorder
        self._buffer = OutputBuffer(recorder)
        self._hooked = [
            (stream, raw)
            for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr))
            if (raw := _raw(stream)) is not None
            and _device(raw) in terminals
            and self._hook(name, raw)
        ]
        global _tee
        _tee = self

    def flush(self) -> None:
        """What the program printed so far is on the terminal and on the tape."""
        for stream, _ in self._hooked:
            try:
                stream.flush()
            except (OSError, ValueError):
                continue  # closed by the program: then it was flushed
        self._buffer.flush()

    def undo(self) -> None:
        for _, raw in self._hooked:
            vars(raw).pop("write", None)
        self._hooked = []

    def start_anew(self) -> None:
        """In a forked child: what waited is the parent's to write."""
        self._buffer = OutputBuffer(self._recorder)

    def _hook(self, name: str, raw: Any) -> bool:
        write: Callable[[Any], int | None] = raw.write

        def tee(piece: Any) -> int | None:
            written = write(piece)
            if written:
                self._buffer.add(name, bytes(piece)[:written])
            return written

        # On the instance: BufferedWriter and TextIOWrapper look `write` up by name each time, and
        # the type, which programs do ask for, stays io.FileIO.
        raw.write = tee
        return True


def _raw(stream: Any) -> Any:
    """The io.FileIO below a standard stream; None: there is none, or somebody has put in his own."""
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return raw if raw is not None and hasattr(raw, "__dict__") else None


def _device(raw: Any) -> int:
    try:
        return os.fstat(raw.fileno()).st_rdev
    except (OSError, ValueError):
        return 0


_tee: Tee | None = None


def _start_anew() -> None:
    if _tee is not None:
        _tee.start_anew()


os.register_at_fork(after_in_child=_start_anew)
