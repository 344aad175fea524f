"""Append events to one segment of a tape. Knows the format and file descriptors; does not know the source of the
events, nor how to handle a failed write (the recorder decides that).
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
from os import SEEK_CUR, lseek, write
from zlib import crc32

from playhead import clock
from playhead.clock import mono_ns, wall_ns
from playhead.host import native_core
from playhead.host.lean import RLock, deque
from playhead.tape.layout import SEGMENT_PREFIX, SEGMENT_SUFFIX, sealed_segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn


_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class SegmentWriter:
    """One process's segment of a tape.

    One write(2) per event: after `kill -9` the page cache still holds every event acknowledged so far. Buffering would
    lose exactly the events that explain the crash.
    """

    # The native core reads and sets most of them for each event, which is quicker without a dict.
    __slots__ = (
        "_at",
        "_deferred",
        "_fd",
        "_file",
        "_writing",
        "crc",
        "first_seq",
        "lock",
        "name",
        "opened",
        "path",
        "run",
        "seq",
        "size",
        "unwritten",
    )

    def __init__(self, run: Path | str, *, first_seq: int = 0) -> None:
        self.run = run
        self.first_seq = first_seq
        self.seq = first_seq
        self.crc = 0
        self.size = 0
        # Re-entrant: a signal handler or a __del__ of the host may record while we write.
        self.lock = RLock()
        # Errors of deferred events that could not be written; emptied by the recorder.
        self.unwritten: list[OSError] = []
        # Counts how often the file was opened: a thread whose write failed can tell whether another one
        # has reopened it since.
        self.opened = 1
        self._writing = False
        self._at = first_seq
        self._deferred: deque[tuple[str, str, bytes]] = deque()
        self.name, self.path, self._fd = _create(run)
        self._file = _identity(os.fstat(self._fd))

    def append(self, kind: str, members: str, data: bytes) -> int:
        """Write one event and return its seq. OSError: it is not on the tape.

        `kind` is JSON, `members` are those between the times and the data, `data` is JSON. An event that is recorded
        during our own write is deferred: it is written directly afterwards.
        """
        with self.lock:
            if self._writing:
                self._deferred.append((kind, members, data))
                return self._at + len(self._deferred)
            self._writing = True
            try:
                if self._deferred:
                    self.write_deferred()
                self._at = self.seq
                return self._write(kind, members, data)
            finally:
                try:
                    if self._deferred:
                        self.write_deferred()
                finally:
                    self._writing = False

    def _write(self, kind: str, members: str, data: bytes) -> int:
        seq = self.seq
        crc = size = 0
        core = native_core.core
        try:
            if core is not None:
                # Does the same as the lines below, in one step.
                return core.write_line(self, kind, wall_ns(), mono_ns(), members, data)  # type: ignore[no-any-return]
            body = (
                f'{{"seq":{seq},"kind":{kind},"wall":{wall_ns()},"mono":{mono_ns()},{members}"data":'
            ).encode() + data
            # The same as `format.close_line`, repeated here because that module loads `re` and `json`,
            # which no process should load at its start.
            crc = crc32(body, self.crc)
            line = body + b',"crc":"%08x"}\n' % crc
            size = len(line)
            # The position must be where we left it. Otherwise this is not our file: the host has closed our descriptor
            # and opened something of its own under that number.
            if lseek(self._fd, 0, SEEK_CUR) != self.size:
                _refuse(errno.EBADF, "the tape's descriptor now belongs to another file")
            if write(self._fd, line) != size:
                _refuse(errno.ENOSPC, "the disk took only part of an event")
            self.seq = seq + 1
            self.crc = crc
            self.size += size
        except BaseException:
            self.settle(seq, crc, size)
            raise
        return seq

    def settle(self, seq: int, crc: int = 0, size: int = 0) -> None:
        """Count the bytes on the disk after a failed write of the event `seq`.

        A signal handler that raises (Ctrl-C) can interrupt between the write and its counting; on a full disk a part of
        a line is written, which is cut off so that the next line starts clean.
        """
        if self.seq != seq or not self.holds():
            return
        there = os.fstat(self._fd).st_size - self.size
        if size and there == size:
            self.seq, self.crc, self.size = seq + 1, crc, self.size + size
        elif there > 0:
            os.ftruncate(self._fd, self.size)
            lseek(self._fd, self.size, os.SEEK_SET)

    def write_deferred(self) -> None:
        """Write the events that were recorded during a write."""
        # One loop, in which further events are only deferred. Recursion would grow the stack with every signal that
        # arrives meanwhile, until the stack overflows and the handler never catches up.
        while self._deferred:
            # Deleted, not popped: the interpreter runs signal handlers after a call, and a handler that records between
            # the two lines would get the seq of this event.
            event = self._deferred[0]
            del self._deferred[0]
            self._at = self.seq
            try:
                self._write(*event)
            except OSError as error:
                self.unwritten.append(error)

    def holds(self) -> bool:
        """Return whether our descriptor still refers to our file, with or without a name."""
        try:
            return _identity(os.fstat(self._fd)) == self._file
        except OSError:
            return False

    def is_on_disk(self) -> bool:
        """Return whether the file that we write to still exists under its name."""
        try:
            return self.holds() and _identity(os.stat(self.path)) == self._file
        except OSError:
            return False

    def reopen(self) -> int:
        """Open the segment again after the folder was deleted or the descriptor closed. Return how many events are
        lost: none if the file still has its name, or our descriptor still refers to it.

        OSError: it failed; the descriptor is kept for the next attempt.
        """
        with self.lock:
            if self.is_on_disk():
                return 0  # another thread has already reopened it
            # Checked before a new file is created: that may get the inode number of the old one.
            held = self.holds()
            if not held and self._find():
                self.opened += 1
                return 0
            name, path, fd = _create(self.run)
            gone = 0
            if held:
                try:
                    _copy(self._fd, fd)
                except OSError:
                    os.close(fd)
                    os.unlink(path)
                    raise
                os.close(self._fd)
            else:
                gone, self.crc = self.seq - self.first_seq, 0
            self.name, self.path, self._fd = name, path, fd
            self._file = _identity(os.fstat(fd))
            self.size = os.fstat(fd).st_size
            self.opened += 1
            return gone

    def _find(self) -> bool:
        """Open our file again under its name, if it still exists."""
        try:
            fd = _high(os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError:
            return False
        if _identity(os.fstat(fd)) != self._file:
            os.close(fd)
            return False
        self._fd = fd
        self.size = lseek(fd, 0, os.SEEK_END)
        return True

    def close(self) -> None:
        """Close the file, unless its descriptor number belongs to another file by now."""
        if self.holds():
            os.close(self._fd)
        self._fd = -1


def _refuse(number: int, why: str) -> NoReturn:
    raise OSError(number, why)


def _identity(state: os.stat_result) -> tuple[int, int]:
    return state.st_dev, state.st_ino


def _create(run: Path | str) -> tuple[str, str, int]:
    """Create a segment: `tape-PID.jsonl`, or `tape-PID-2.jsonl` if the pid was used before."""
    # In a container the same program has the same pid each time: a resumed run must not take a name
    # that is in the sealed file.
    sealed = sealed_segments(run)
    for again in range(1, 10_000):
        name = str(clock.pid()) if again == 1 else f"{clock.pid()}-{again}"
        if name in sealed:
            continue
        path = os.path.join(run, f"{SEGMENT_PREFIX}{name}{SEGMENT_SUFFIX}")
        try:
            return name, path, _high(os.open(path, _FLAGS | os.O_EXCL, 0o600))
        except FileExistsError:
            continue
        except FileNotFoundError:  # the folder was deleted under the program
            _make(os.fspath(run))
            return name, path, _high(os.open(path, _FLAGS | os.O_EXCL, 0o600))
    raise FileExistsError(f"{run} holds 10,000 segments of pid {clock.pid()}")


def _make(folder: str) -> None:
    """Create the folder: its parents with the user's default permissions, the folder itself for its owner alone."""
    os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return  # another process of the run was first


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


def _copy(source: int, target: int) -> None:
    at = 0
    while piece := os.pread(source, 1 << 20, at):
        at += len(piece)
        view = memoryview(piece)
        while view:
            view = view[write(target, view) :]
