"""Lines of a tape written by hand: at times of their own, and by one process after the other. Knows
the chain of checksums and locks; not what the events mean.

A recorder holds its segment as long as its process lives. What is written here belongs to no process:
a session that a shell script goes through in steps, a run that another tool recorded yesterday.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.events import Ref
from playhead.tape.format import NotAnEvent, close_line, members_of, open_line, segment_file

# The last line of a segment is found within this much of its end: payloads over 64 KiB are blobs.
_TAIL = 256 * 1024

# kind, data, whether it is a user's own → the data as JSON.
Encode = Callable[[str, Any, bool], bytes]


class HandWriter:
    """Appends to one segment. Each `add` takes the lock, finds the end and writes one line."""

    def __init__(self, run: Path, segment: str, *, who: str, encode: Encode) -> None:
        self.run = run
        self.segment = segment
        self._path = run / segment_file(segment)
        self._who = who
        self._encode = encode

    def add(
        self,
        kind: str,
        data: Any,
        *,
        parent: Ref | None = 0,
        cause: Ref | None = None,
        lane: str = "main",
        wall: int | None = None,
        mono: int | None = None,
        user: bool = False,
    ) -> int:
        """Write one event and return its seq. OSError: it is not on the tape."""
        encoded = self._encode(kind, data, user)
        members = self._members(kind, parent, cause, lane, wall, mono)
        if user:
            members["user"] = True
        fd = self._open()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            return _append(fd, members, encoded)
        finally:
            os.close(fd)  # and the lock with it

    def summary(self) -> tuple[int, int, int]:
        """How many events and bytes the segment has by now, and its last checksum."""
        fd = self._open()
        try:
            size, following, crc = _end_of(fd)
            return following - _first_seq(os.pread(fd, _TAIL, 0)), size, crc
        finally:
            os.close(fd)

    def write_all(self, rows: Iterable[Mapping[str, Any]]) -> tuple[int, int, int]:
        """A whole segment at once, which nobody else knows of yet; how many events and bytes it has,
        and its last checksum. Rows have `kind`, `data`, `wall`, `mono`, and what `add` takes besides.
        """
        crc = count = size = 0
        with open(self._open(), "wb") as file:
            for row in rows:
                encoded = self._encode(row["kind"], row["data"], False)
                members = self._members(
                    row["kind"], row.get("parent", 0), row.get("cause"), row.get("lane", "main"),
                    row["wall"], row["mono"],
                )  # fmt: skip
                line, crc = close_line(_body(count, members, encoded), crc)
                file.write(line)
                count, size = count + 1, size + len(line)
        return count, size, crc

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _members(  # noqa: PLR0917  (private, called twice)
        self,
        kind: str,
        parent: Ref | None,
        cause: Ref | None,
        lane: str,
        wall: int | None,
        mono: int | None,
    ) -> dict[str, Any]:
        members: dict[str, Any] = {
            "kind": kind,
            "wall": clock.wall_ns() if wall is None else wall,
            "mono": clock.mono_ns() if mono is None else mono,
            "pid": clock.pid(),
            "seg": self.segment,
            "lane": lane,
            "at": "",
            "who": self._who,
            "parent": parent,
        }
        if cause is not None:
            members["cause"] = cause
        return members


def _append(fd: int, members: Mapping[str, Any], encoded: bytes) -> int:
    size, seq, crc = _end_of(fd)
    line, _ = close_line(_body(seq, members, encoded), crc)
    if os.write(fd, line) != len(line):
        os.ftruncate(fd, size)
        raise OSError(errno.ENOSPC, "the disk took only part of an event")
    return seq


def _body(seq: int, members: Mapping[str, Any], encoded: bytes) -> bytes:
    head = json.dumps({"seq": seq, **members}, ensure_ascii=False, separators=(",", ":"))
    return head[:-1].encode("utf-8", "backslashreplace") + b',"data":' + encoded


def _first_seq(beginning: bytes) -> int:
    """A resumed run goes on counting in a new segment."""
    try:
        return int(members_of(beginning.partition(b"\n")[0])["seq"])
    except (NotAnEvent, KeyError, TypeError, ValueError):
        return 0


def _end_of(fd: int) -> tuple[int, int, int]:
    """Where the last whole line ends, the next seq, and the checksum to go on with. What a killed
    process has left after that line is cut off: the next line must start clean.
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
