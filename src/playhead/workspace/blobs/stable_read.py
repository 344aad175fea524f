"""Read a file that may be changing: never through a link, never waiting for a pipe, and detect torn reads.

A SQLite database in use is copied with SQLite's backup API: byte copies of open databases were torn in 4 of 40 (WAL)
and 8 of 40 (rollback) trials. Only a process that does not have the database open may copy it, because closing a
file drops all POSIX locks of the process on it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import urllib.parse
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from playhead.host.later import Later

if TYPE_CHECKING:
    import sqlite3
else:
    # Importing it takes 5 ms of each start, and few workspaces hold a database.
    sqlite3 = Later("sqlite3")


_PIECE = 1 << 20
_TRIES = 3
# Linux: let a copy share the blocks of its file (btrfs, XFS).
_FICLONE = 0x40049409
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Content(NamedTuple):
    """A file as it was read. `torn`: it changed during three reads in a row."""

    data: bytes
    status: os.stat_result
    torn: bool


def read_file(path: bytes) -> Content:
    """Read a file. OSError: it cannot be read, or is not a regular file any more."""
    fd = os.open(path, _FLAGS)
    try:
        tries = 0
        while True:
            tries += 1
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            data = _all_of(fd, before.st_size)
            after = os.fstat(fd)
            is_whole = _version(before) == _version(after) and len(data) == after.st_size
            if is_whole or tries == _TRIES:
                return Content(data, after, torn=not is_whole)
            os.lseek(fd, 0, os.SEEK_SET)
    finally:
        os.close(fd)


def open_file(path: bytes) -> int:
    return os.open(path, _FLAGS)


def hash_file(fd: int) -> str:
    """The SHA-256 of a large file, piece by piece."""
    digest = hashlib.sha256()
    os.lseek(fd, 0, os.SEEK_SET)
    while piece := os.read(fd, _PIECE):
        digest.update(piece)
    return digest.hexdigest()


def copy_file(fd: int, target: str) -> None:
    """Make a private copy. Holes stay holes, and blocks are shared if the file system supports it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    out = os.open(target, flags, 0o600)
    try:
        with suppress(OSError):
            fcntl.ioctl(out, _FICLONE, fd)
            return
        size = os.fstat(fd).st_size
        os.ftruncate(out, size)
        at = 0
        while at < size:
            try:
                at = os.lseek(fd, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return  # the rest is a hole
                raise
            piece = os.pread(fd, _PIECE, at)
            if not piece:
                return
            at += os.pwrite(out, piece, at)
    finally:
        os.close(out)


def _all_of(fd: int, size: int) -> bytes:
    data = os.read(fd, size + 1)
    if len(data) >= size:
        return data
    parts = [data]
    while piece := os.read(fd, _PIECE):
        parts.append(piece)
    return b"".join(parts)


def _version(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


_MAGIC = b"SQLite format 3\0"
_LONGEST_S = 0.03


def is_database(content: bytes) -> bool:
    return content.startswith(_MAGIC)


def read_database(path: bytes) -> bytes | None:
    """Return a consistent copy. None: there was none in time."""
    name = urllib.parse.quote(os.fsencode(path))
    # mode=ro: opening it normally would write the log back and delete the user's -wal.
    with suppress(sqlite3.Error):
        source = sqlite3.connect(f"file:{name}?mode=ro", uri=True, timeout=_LONGEST_S)
        with closing(source), closing(sqlite3.connect(":memory:")) as copy:
            serialize = getattr(copy, "serialize", None)
            if serialize is None:
                return None  # CPython 3.10
            source.backup(copy)
            return bytes(serialize())
    return None
