"""What a child wrote into a file that the program gave it, read back from the file.

The child writes straight into it, as it would without us. Knows offsets; not processes.
"""

from __future__ import annotations

import fcntl
import os
import stat

from playhead.hooks.process.flight import Flight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable


_PIECE = 64 * 1024

# Up to where a file has been read for a child that has gone. Two children that write into one file
# at the same time cannot be told apart, but no byte may be on the tape twice.
_read_up_to: dict[Hashable, tuple[int, int]] = {}


def expect_file(fd: int, flight: Flight, stream: str) -> None:
    """`fd` is a regular file that the child writes into: read what is new when it has gone."""
    what = os.fstat(fd)
    if not stat.S_ISREG(what.st_mode):
        return
    key = (what.st_dev, what.st_ino)
    start = _position(fd)
    # The program may close its own descriptor long before the child ends, and it may be one that
    # cannot be read from.
    ours = os.dup(fd)
    try:
        reader = os.open(f"/dev/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        os.close(ours)
        return
    users, up_to = _read_up_to.get(key, (0, start))
    _read_up_to[key] = (users + 1, up_to)

    def read(flight: Flight) -> None:
        users, up_to = _read_up_to.pop(key, (1, start))
        end = _position(ours)
        try:
            _tell(flight, stream, reader, max(start, up_to), end)
        finally:
            os.close(reader)
            os.close(ours)
            if users > 1:
                _read_up_to[key] = (users - 1, max(end, up_to))

    flight.at_exit(read)


def _position(fd: int) -> int:
    """Where the next byte goes. The child shares our description of the file, and so its offset."""
    at = os.lseek(fd, 0, os.SEEK_CUR)
    return max(at, os.fstat(fd).st_size) if _appends(fd) else at


def _appends(fd: int) -> bool:
    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND)


def _tell(flight: Flight, stream: str, reader: int, start: int, end: int) -> None:
    while start < end:
        piece = os.pread(reader, min(_PIECE, end - start), start)
        if not piece:
            return
        flight.heard(stream, piece)
        start += len(piece)
