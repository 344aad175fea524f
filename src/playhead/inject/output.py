"""What a program prints on a terminal, as it is printed. Knows Python's own streams; not pipes.

A terminal cannot be stood in for: a program asks it for its size, its modes and its process group.
So it is left to the program, and Python's streams tell what they write to it. Their objects stay the
very same; only the `write` of their buffers is ours.
"""

from __future__ import annotations

import io
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
    """Stands in the `write` of those standard streams that are one of `terminals`."""

    def __init__(self, recorder: Recorder, terminals: tuple[int, ...]) -> None:
        self._recorder = recorder
        self._buffer = OutputBuffer(recorder)
        self._hooked = [
            (stream, stream.buffer)
            for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr))
            if _device(stream) in terminals and self._hook(name, stream.buffer)
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
        for _, buffer in self._hooked:
            vars(buffer).pop("write", None)
        self._hooked = []

    def start_anew(self) -> None:
        """In a forked child: what waited is the parent's to write."""
        self._buffer = OutputBuffer(self._recorder)

    def _hook(self, name: str, buffer: Any) -> bool:
        write: Callable[[Any], int | None] = buffer.write

        def tee(piece: Any) -> int | None:
            # First for real: Ctrl-C may strike anywhere in here, and what is printed must be neither
            # lost nor printed twice. So not below the buffer either: it would write again what a
            # `write` that raised had written already.
            written = write(piece)
            self._buffer.add(name, bytes(piece))
            return written

        # On the instance: TextIOWrapper looks `write` up by name each time, and the types, which
        # programs do ask for, stay io's own.
        buffer.write = tee
        return True


def _device(stream: Any) -> int:
    """The device below a standard stream of Python's own make; 0: closed, or somebody's own."""
    if type(stream) is not io.TextIOWrapper or not hasattr(stream.buffer, "__dict__"):
        return 0
    try:
        return os.fstat(stream.fileno()).st_rdev
    except (OSError, ValueError):
        return 0


_tee: Tee | None = None


def _start_anew() -> None:
    if _tee is not None:
        _tee.start_anew()


os.register_at_fork(after_in_child=_start_anew)
