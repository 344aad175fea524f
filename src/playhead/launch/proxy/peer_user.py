"""Find the user at the other end of a loopback connection. Knows `/proc/net`; does not know requests.

The ports of the proxy are open to every process of the machine. A token in every path was rejected (agents rebuild
URLs from the origin, and would drop it), so the proxy asks the kernel which user has connected.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from contextlib import suppress

_TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
_ROOT = 0


def user_of(connection: socket.socket) -> int | None:
    """The user id of the connecting process; None: unknown (not Linux, another network namespace, or closed)."""
    try:
        ours, theirs = connection.getsockname()[1], connection.getpeername()[1]
    except OSError:
        return None
    for table in _TABLES:
        with suppress(OSError, ValueError, IndexError), open(table, "rb") as rows:
            next(rows, None)
            found = _user_in(rows, theirs, ours)
            if found is not None:
                return found
    return None


def _user_in(rows: Iterable[bytes], local: int, remote: int) -> int | None:
    here, there = f":{local:04X}".encode(), f":{remote:04X}".encode()
    for row in rows:
        fields = row.split()
        if fields[1].endswith(here) and fields[2].endswith(there):
            return int(fields[7])
    return None


def may_connect(connection: socket.socket) -> bool:
    """Return whether a client may add calls to the run. Our own user may, and so may root, who has all rights
    anyway.

    If the proxy itself runs as root, its command may have changed to any user, so every user may connect. An unknown
    user may connect: in a network namespace of its own, only processes of the run can reach the port.
    """
    mine = os.geteuid()
    return mine == _ROOT or user_of(connection) in (None, mine, _ROOT)
