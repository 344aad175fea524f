"""A port on this machine alone. Knows sockets; not who serves it."""

from __future__ import annotations

import socket

_BACKLOG = 256


def listen(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """A port on this machine alone; any that is free by default. OSError: it cannot be had."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made
