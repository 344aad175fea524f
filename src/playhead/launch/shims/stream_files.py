"""Read files that are the stdin, stdout or stderr of a program, without moving the position that it shares with us."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator

from playhead.launch.shims.shim_request import LONGEST_INPUT

_PIECE = 1 << 16


def rest_of(fd: int) -> bytes | None:
    """Return the unread rest of a file. None: it is too large."""
    at = os.lseek(fd, 0, os.SEEK_CUR)
    size = os.fstat(fd).st_size - at
    return os.pread(fd, max(size, 0), at) if size <= LONGEST_INPUT else None


def end_of(fd: int) -> int:
    """Return the offset at which the next write will go."""
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND:
        return os.fstat(fd).st_size
    return os.lseek(fd, 0, os.SEEK_CUR)


def written(fd: int, start: int) -> Iterator[bytes]:
    """Return the bytes between `start` and the offset of the next write."""
    end = end_of(fd)
    try:
        own = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return  # the user may write this file but not read it, so neither do we
    try:
        while start < end and (piece := os.pread(own, min(_PIECE, end - start), start)):
            start += len(piece)
            yield piece
    finally:
        os.close(own)
