"""Append to a segment that belongs to no process: several processes write to it, one after the other.

Knows the chain of checksums and file locks; does not know what the events mean.

A recorder holds its segment as long as its process lives. This writer is for a session that a shell script
runs in steps, each a process of its own, and for runs that are imported from another tool.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from playhead import clock
from playhead.tape.format import NotAnEvent, close_line, members_of, open_line, segment_file

# The last line of a segment begins within this many bytes before its end: payloads over 64 KiB are blobs.
_TAIL = 256 * 1024

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class SharedSegmentWriter:
    """Writes to a shared segment. Each `append` takes the file lock, finds the end and writes one line. Inside a `with`
    block the lock is held and the end is known: for many events in a row.
    """

    def __init__(self, run: Path, segment: str) -> None:
        self.run = run
        self.name = segment
        self._path = run / segment_file(segment)
        self._fd: int | None = None
        self._size = self._seq = self._crc = 0

    def append(
        self,
        kind: str,
        members: str,
        data: bytes,
        wall: int | None = None,
        mono: int | None = None,
    ) -> int:
        """Write one event and return its seq. OSError: it is not on the tape."""
        if self._fd is None:
            with self:
                return self.append(kind, members, data, wall, mono)
        seq = self._seq
        wall = clock.wall_ns() if wall is None else wall
        mono = clock.mono_ns() if mono is None else mono
        head = f'{{"seq":{seq},"kind":{kind},"wall":{wall},"mono":{mono},{members}"data":'
        line, crc = close_line(head.encode() + data, self._crc)
        if os.write(self._fd, line) != len(line):
            os.ftruncate(self._fd, self._size)
            raise OSError(errno.ENOSPC, "the disk took only part of an event")
        self._size, self._seq, self._crc = self._size + len(line), seq + 1, crc
        return seq

    def __enter__(self) -> SharedSegmentWriter:  # noqa: PYI034  (typing.Self came with 3.11)
        fd = os.open(self._path, _FLAGS, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            self._size, self._seq, self._crc = _end_of(fd)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        return self

    def __exit__(self, *_: object) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)  # and the lock with it

    def summary(self) -> tuple[int, int, int]:
        """Return the numbers of events and bytes of the segment, and its last checksum."""
        with self:
            first = _first_seq(os.pread(self._fd or 0, _TAIL, 0))
            return self._seq - first, self._size, self._crc


def _first_seq(beginning: bytes) -> int:
    """Return the first seq: a resumed run continues its count in a new segment."""
    try:
        return int(members_of(beginning.partition(b"\n")[0])["seq"])
    except (NotAnEvent, KeyError, TypeError, ValueError):
        return 0


def _end_of(fd: int) -> tuple[int, int, int]:
    """Return the end of the last complete line, the next seq, and the checksum to continue. The rest of a line that a
    killed process left is cut off, so that the next line starts clean.
    """
    size = os.fstat(fd).st_size
    tail = os.pread(fd, _TAIL, max(0, size - _TAIL))
    whole = tail.rfind(b"\n") + 1
    if whole < len(tail):
        size -= len(tail) - whole
        os.ftruncate(fd, size)
    if not whole:
        return size, 0, 0
    last = tail[tail.rfind(b"\n", 0, whole - 1) + 1 : whole]
    try:
        _, crc = open_line(last)
        return size, int(members_of(last)["seq"]) + 1, crc
    except (NotAnEvent, KeyError, TypeError, ValueError) as error:
        raise OSError(errno.EILSEQ, f"the last line of the tape cannot be read: {error}") from None
