"""Messages between the launcher and the process in the fence: JSON, with open files beside it. Knows one socket;
does not know what the messages mean.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
from collections.abc import Iterable
from typing import Any

_SIZE = struct.Struct("=I")
_MOST_HANDLES = 8
_LAST_STANDARD = 2


class FenceLine:
    """One end of the socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, members: dict[str, Any], handles: Iterable[int] = ()) -> None:
        # ASCII: what cannot be decoded in an environment is kept as lone surrogates, which JSON escapes.
        body = json.dumps(members).encode("ascii")
        socket.send_fds(self._end, [_SIZE.pack(len(body))], list(handles))
        self._end.sendall(body)

    def receive(self) -> tuple[dict[str, Any] | None, list[int]]:
        """Return the next message and its open files; None: the other side has closed the socket."""
        head, received, _, _ = socket.recv_fds(
            self._end, _SIZE.size, _MOST_HANDLES, socket.MSG_CMSG_CLOEXEC
        )
        handles = [_above_standard(one) for one in received]
        if len(head) < _SIZE.size:
            return None, handles
        missing = _SIZE.unpack(head)[0]
        pieces = []
        while missing:
            piece = self._end.recv(min(missing, 1 << 20))
            if not piece:
                return None, handles
            pieces.append(piece)
            missing -= len(piece)
        return json.loads(b"".join(pieces)), handles

    def close(self) -> None:
        self._end.close()


def pair() -> tuple[FenceLine, FenceLine]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return _line(one), _line(other)


def _line(end: socket.socket) -> FenceLine:
    return FenceLine(socket.socket(fileno=_above_standard(end.detach())))


def _above_standard(fd: int) -> int:
    """Return the same file under a number above stdin, stdout and stderr: if one of these is closed, it stays closed
    for the command.
    """
    if fd > _LAST_STANDARD:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LAST_STANDARD + 1)
    finally:
        os.close(fd)
