"""The position of a command's output: a memory-mapped page in the run's folder, for as long as the run lasts.

The process that passes the output on writes there how much it has read. From this and from the bytes that are
still in the pipe, every process of the run can compute how much has been written in all. So a program knows
which part of the output belongs to a child, although the child writes into the pipe directly. Knows the page
and pipes; does not know the writers.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import stat
import struct
import sys
import termios
from contextlib import suppress
from pathlib import Path

from playhead import clock
from playhead.tape.store import ANSWERED_CONNECTIONS, PRINT_TURNS

_NAME = "output.at"
_STREAMS = ("stdout", "stderr")
# The pipe's inode; a count that is odd while the pipe is being read; bytes read so far.
_SLOT = struct.Struct("QQQ")
_PLACES = tuple((stream, _SLOT.size * at) for at, stream in enumerate(_STREAMS))
# The bytes in a pipe, as the kernel counts them.
_COUNT, _NONE = struct.Struct("i"), b"\0" * 4
# How often to check again while the reader is reading. It needs microseconds; on a busy machine it may be descheduled
# in the middle, so the later checks come after a pause. The limit is for a reader that was stopped.
_LOOKS = 200
_PATIENT_LOOKS = 200
_PAUSE_S = 0.001


class OutputPage:
    """The reader's side."""

    def __init__(self, run: Path, pipes: dict[str, int]) -> None:
        """`pipes`: the descriptor of each stream's pipe."""
        fd = os.open(run / _NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, _SLOT.size * len(_STREAMS))
            self._page = mmap.mmap(fd, _SLOT.size * len(_STREAMS))
        finally:
            os.close(fd)
        for stream, pipe in pipes.items():
            _SLOT.pack_into(self._page, _place(stream), os.fstat(pipe).st_ino, 0, 0)

    def begin(self, stream: str) -> None:
        """Note that the pipe is about to be read."""
        inode, count, total = _SLOT.unpack_from(self._page, _place(stream))
        _SLOT.pack_into(self._page, _place(stream), inode, count | 1, total)

    def end(self, stream: str, size: int) -> None:
        """Note that this many bytes were read."""
        inode, count, total = _SLOT.unpack_from(self._page, _place(stream))
        _SLOT.pack_into(self._page, _place(stream), inode, (count | 1) + 1, total + size)


def forget(run: Path) -> None:
    """Remove the page at the end of the run: later output of its processes is not part of it. In a replay, remove the
    reports of its processes, too.
    """
    for path in (
        *(run / name for name in (_NAME, PRINT_TURNS, ANSWERED_CONNECTIONS)),
        *run.glob(".waits-*"),
    ):
        with suppress(OSError):
            os.unlink(path)


class OutputGauge:
    """The writer's side: how much has been written into a pipe that is the command's output."""

    def __init__(self, run: Path | str) -> None:
        self._page: mmap.mmap | None = None
        with suppress(OSError, ValueError):  # there is no page: the output is not passed on
            fd = os.open(
                f"{run}/{_NAME}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )
            try:
                self._page = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
            finally:
                os.close(fd)

    @property
    def is_open(self) -> bool:
        """Return whether the output of this run is passed on, and can be measured."""
        return self._page is not None and sys.platform == "linux"

    def read(self, fd: int) -> tuple[str, int] | None:
        """Return the name of the stream that `fd` is, and how much has been written into it; None if it is not a stream
        of the command, or cannot be determined.
        """
        if self._page is None or not self.is_open:
            return None
        try:
            what = os.fstat(fd)
            if not stat.S_ISFIFO(what.st_mode):
                return None
            for stream, place in _PLACES:
                if _SLOT.unpack_from(self._page, place)[0] == what.st_ino:
                    at = self._look(place, fd)
                    return None if at is None else (stream, at)
        except OSError:
            return None
        return None

    def _look(self, place: int, fd: int) -> int | None:
        page, read_slot = self._page, _SLOT.unpack_from
        assert page is not None  # noqa: S101  asked by `read` alone
        for look in range(_LOOKS + _PATIENT_LOOKS):
            if look >= _LOOKS:
                clock.sleep(_PAUSE_S)
            before = read_slot(page, place)
            waiting = _COUNT.unpack(fcntl.ioctl(fd, termios.FIONREAD, _NONE))[0]
            if before[1] % 2 == 0 and read_slot(page, place) == before:
                return int(before[2]) + int(waiting)
        return None


def _place(stream: str) -> int:
    return _SLOT.size * _STREAMS.index(stream)
