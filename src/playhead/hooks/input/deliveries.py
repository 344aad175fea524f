"""Wait in a replay until the system has delivered the data of a replayed client to the program's socket.

A replay moves on when every thread waits. TCP delivers later than it sends, even on one machine: a busy kernel hands
packets to a thread of its own, which waits for a processor like any other. Until then the data of the client is
neither in the program nor in the queue of the program's socket, so every thread seems to wait, and the replay would
skip the points of the request.

Knows sockets; does not know servers or event loops.
"""

from __future__ import annotations

import fcntl
import select
import sys
import termios
from typing import TYPE_CHECKING

from playhead.recording import order_slot

if TYPE_CHECKING:
    from collections.abc import Callable

# Only Linux reports that the other side has closed while unread data is left.
_CLOSED = getattr(select, "POLLRDHUP", None)


class Deliveries:
    """Counts the bytes that the client of one connection has sent, and those that have reached the program's socket."""

    def __init__(self) -> None:
        self._listener = -1
        # The program's socket of this connection; -1 until the program has accepted it.
        self._socket = -1
        self._sent = 0
        self._received = 0
        self._is_over = False

    def connected(self, listener: int) -> None:
        """Note that the client has connected to this listener of the program."""
        self._listener = listener
        _expect(self._has_come_in)

    def accepted(self, socket: int) -> None:
        self._socket = socket

    def sent(self, size: int) -> None:
        """Note that the client has sent this many bytes."""
        self._sent += size
        _expect(self._has_data)

    def received(self, size: int) -> None:
        """Note that the program has read this many bytes."""
        self._received += size

    def closed(self) -> None:
        """Note that the client has closed the connection, or will send nothing more."""
        _expect(self._has_end)

    def over(self) -> None:
        """Note that the program has lost or closed the connection."""
        self._is_over = True

    def _has_come_in(self) -> bool:
        # The connection has arrived as soon as the program can accept it.
        is_accepted = self._is_over or self._socket >= 0
        return is_accepted or _has_event(self._listener, select.POLLIN)

    def _has_data(self) -> bool:
        if self._is_over or self._socket < 0:
            return self._has_come_in()
        return self._received + _unread(self._socket) >= self._sent

    def _has_end(self) -> bool:
        if self._is_over or self._socket < 0 or _CLOSED is None:
            return self._has_come_in()
        return _has_event(self._socket, _CLOSED)


def _expect(has_come: Callable[[], bool]) -> None:
    head = order_slot.active()
    if head is not None:
        head.time.waits.strangers.expect(has_come)


def _unread(fd: int) -> int:
    """Return the number of bytes that a read of this socket would find."""
    try:
        size = fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0")
    except OSError:
        return sys.maxsize  # closed: nothing is on its way to it
    return int.from_bytes(size, sys.byteorder)


def _has_event(fd: int, event: int) -> bool:
    """Return whether this event has happened to the socket. An error, or a closed socket, counts as well."""
    if fd < 0:
        return True  # the program had closed it before we looked
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(0))
