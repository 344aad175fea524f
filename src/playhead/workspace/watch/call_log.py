"""A list of the calls that need no mark: where they started or ended, no file event waited and no change was unstored.

A mark has to pass through the watcher, which costs a call 0.3 ms and two changes of processes. Most calls change no
file. So the watcher shares its queue of file events with the processes of the run, and a page that says how much of
the queue it has handled. A process that finds both empty appends a line here instead, for 10 µs. The watcher reads
the lines before it handles the next file event.

Why the order is exact: the watcher notes on the page that it is about to read the queue, before it reads. A process
looks at the queue first, and then at the page. If nothing waits in either, then each event before this moment has been
handled, and each event that the watcher reads later comes after it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import struct
import sys
import termios
from collections.abc import Iterator

from playhead.clock import mono_ns

_PAGE, _LINES = "page", "lines"
# How often the watcher began to read its queue; and how many of these reads it has handled, with all changes stored.
_COUNTS = struct.Struct("QQ")
_COUNT = struct.Struct("Q")
_NONE = b"\0" * 4
# A list of this size is about 700,000 calls. Later calls are marked: the list exists as long as the run.
_MOST_BYTES = 64 * 1024 * 1024
_LOOK_AFTER = 1024
# Descriptors from here on are out of the way of the program.
_HIGH = 700


class CallLog:
    """The watcher's side."""

    def __init__(self, folder: bytes) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        page = os.open(os.path.join(folder, _PAGE.encode()), flags, 0o600)
        try:
            os.ftruncate(page, _COUNTS.size)
            self._page = mmap.mmap(page, _COUNTS.size)
        finally:
            os.close(page)
        self._lines = os.open(os.path.join(folder, _LINES.encode()), flags, 0o600)
        self._begun = 0
        self._rest = b""

    def begin_read(self) -> None:
        """Note that the queue is about to be read."""
        self._begun += 1
        # Each thread of the watcher writes its own count only.
        _COUNT.pack_into(self._page, 0, self._begun)

    def end_read(self, handled: int) -> None:
        """Note that so many reads are handled, and all changes stored."""
        _COUNT.pack_into(self._page, _COUNT.size, handled)

    def read(self) -> Iterator[tuple[str, int, str]]:
        """Yield the lines since the last time: a start or an end, its monotonic time, and the call."""
        while piece := os.read(self._lines, 1 << 16):
            *lines, self._rest = (self._rest + piece).split(b"\n")
            for line in lines:
                kind, _, rest = line.decode().partition(" ")
                moment, _, call = rest.partition(" ")
                yield kind, int(moment), call

    def close(self) -> None:
        os.close(self._lines)
        self._page.close()


class QuietQueue:
    """The side of the processes: finds out whether file events wait. OSError: the log cannot be used."""

    def __init__(self, folder: str, queue: int) -> None:
        """`queue` is the watcher's queue of file events, which now belongs to this object."""
        self._queue = _moved(queue)
        page = os.open(f"{folder}/{_PAGE}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._page = mmap.mmap(page, _COUNTS.size, prot=mmap.PROT_READ)
        finally:
            os.close(page)
        self._lines = _moved(
            os.open(f"{folder}/{_LINES}", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        )
        self._ids = self._identities()
        self._written = 0

    def append(self, kind: str, call: str) -> bool:
        """Note that a call starts or ends now. False: file events wait, so the call has to be marked."""
        if not self.is_quiet():
            return False
        try:
            self._written += 1
            if not self._written % _LOOK_AFTER and os.fstat(self._lines).st_size > _MOST_BYTES:
                self._written -= 1
                return False
            os.write(self._lines, f"{kind} {mono_ns()} {call}\n".encode())
        except (OSError, ValueError):
            return False
        return True

    def is_quiet(self) -> bool:
        """Return whether no file event waits in the queue, and the watcher has handled all that it has read."""
        try:
            if self._identities() != self._ids:
                return False
            # In this order: see above.
            if fcntl.ioctl(self._queue, termios.FIONREAD, _NONE) != _NONE:
                return False
        except OSError:
            return False
        begun, handled = _COUNTS.unpack_from(self._page)
        return bool(begun == handled)

    def _identities(self) -> tuple[tuple[int, int], ...]:
        """Return what the descriptors are: a program may close all of them, and open its own under these numbers."""
        each = (os.fstat(self._queue), os.fstat(self._lines))
        return tuple((one.st_dev, one.st_ino) for one in each)


def _moved(fd: int) -> int:
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except (OSError, ValueError):
        return fd
    os.close(fd)
    return moved


def send_queue(line: socket.socket, address: bytes, queue: int) -> None:
    """Answer a process that waits at a mark, and share the queue with it."""
    fds = queue.to_bytes(4, sys.byteorder)
    line.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)], 0, address)


def receive_queue(line: socket.socket) -> int | None:
    """Wait for the answer to a mark. Return the watcher's queue, if the answer has it."""
    _, others, _, _ = line.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
    for level, kind, fds in others:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS and len(fds) >= 4:
            return int.from_bytes(fds[:4], sys.byteorder)
    return None
