"""Append events to one segment of a tape. Knows the format and file descriptors; not who made
the events, nor what to do when the disk says no (the recorder decides that).
"""

from __future__ import annotations

import fcntl
import os
import resource
import threading
from collections import deque
from os import write
from pathlib import Path
from zlib import crc32

from playhead import clock
from playhead.clock import mono_ns, wall_ns
from playhead.tape.format import SEGMENT_PREFIX, SEGMENT_SUFFIX
from playhead.tape.taken import sealed_segments

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class SegmentWriter:
    """One process's share of a tape.

    One write(2) an event: after `kill -9` the page cache still holds every event acknowledged so
    far. Buffering would lose exactly the ones that explain the crash.
    """

    def __init__(self, run: Path, *, first_seq: int = 0) -> None:
        self.run = run
        self.seq = first_seq
        self.crc = 0
        self.size = 0
        # Re-entrant: a signal handler or a __del__ of the host may record while we write.
        self.lock = threading.RLock()
        self._writing = False
        self._deferred: deque[tuple[str, str, bytes]] = deque()
        self.name, self.path, self._fd = _create(run)

    def append(self, kind: str, rest: str, data: bytes) -> int | None:
        """Write one event and return its seq. OSError: it is not on the tape.

        `kind` is JSON, `rest` the members between the clock's and the data, `data` JSON. Returns
        None for an event recorded from inside our own write: it follows directly after.
        """
        with self.lock:
            if self._writing:
                self._deferred.append((kind, rest, data))
                return None
            self._writing = True
            try:
                seq = self.seq
                body = (
                    f'{{"seq":{seq},"kind":{kind},"wall":{wall_ns()},"mono":{mono_ns()},{rest}"data":'
                ).encode() + data
                crc = crc32(body, self.crc)
                line = b'%b,"crc":"%08x"}\n' % (body, crc)
                size, before = len(line), (seq, self.crc, self.size)
                # Counted before it is written: a signal handler that raises (Ctrl-C) can strike
                # after the write and not between these lines, which call nothing.
                self.seq, self.crc, self.size = seq + 1, crc, before[2] + size
                try:
                    written = write(self._fd, line)
                except OSError:
                    self.seq, self.crc, self.size = before
                    raise
                if written != size:
                    self.seq, self.crc, self.size = before
                    self._undo_short_write()
            finally:
                self._writing = False
            if self._deferred:
                self.append(*self._deferred.popleft())
            return seq

    def _undo_short_write(self) -> None:
        """Cut the torn line off again, so that the next one starts on a clean edge."""
        os.ftruncate(self._fd, self.size)
        raise OSError(28, "the disk took only part of an event")

    def is_on_disk(self) -> bool:
        """Whether the file that we write into still has a name, and it is ours."""
        try:
            ours, named = os.fstat(self._fd), os.stat(self.path)
        except OSError:
            return False
        return (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino)

    def rescue(self) -> bytes:
        """What the segment holds by now, even if its file has lost its name; b"" if that is gone."""
        try:
            return b"".join(_pieces(self._fd))
        except OSError:
            return b""

    def reopen(self) -> None:
        """Come back after the folder was deleted or the descriptor closed under us.

        The bytes written so far are put back if we still hold them; the chain goes on.
        """
        held = self.rescue()
        self.close()
        self.run.mkdir(mode=0o700, parents=True, exist_ok=True)
        missing = not self.path.exists()
        self._fd = _high(os.open(self.path, _FLAGS, 0o600))
        if missing and held:
            os.write(self._fd, held)
        self.size = os.fstat(self._fd).st_size
        if not self.size:
            self.crc = 0

    def close(self) -> None:
        try:
            os.close(self._fd)
        except OSError:
            self._fd = -1  # closed under us already: closed is what was asked for
        self._fd = -1


def _create(run: Path) -> tuple[str, Path, int]:
    """A segment of our own: `tape-PID.jsonl`, or `tape-PID-2.jsonl` where a pid came round again."""
    # In a container the same program has the same pid each time: a resumed run must not take a name
    # that is in the sealed file.
    sealed = sealed_segments(run)
    for again in range(1, 10_000):
        name = str(clock.pid()) if again == 1 else f"{clock.pid()}-{again}"
        if name in sealed:
            continue
        path = run / f"{SEGMENT_PREFIX}{name}{SEGMENT_SUFFIX}"
        try:
            return name, path, _high(os.open(path, _FLAGS | os.O_EXCL, 0o600))
        except FileExistsError:
            continue
    raise FileExistsError(f"{run} holds 10,000 segments of pid {clock.pid()}")


def _high(fd: int) -> int:
    """Move the descriptor up, out of the way of programs that close and reuse the low ones.

    A daemon that closes 3..N and opens its own files must never find our writes in them.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = 700 if soft == resource.RLIM_INFINITY else max(10, min(700, soft - 50))
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)
    except OSError:
        return fd
    os.close(fd)
    return moved


def _pieces(fd: int) -> list[bytes]:
    pieces = []
    at = 0
    while piece := os.pread(fd, 1 << 20, at):
        pieces.append(piece)
        at += len(piece)
    return pieces
