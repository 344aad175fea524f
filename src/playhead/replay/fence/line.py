"""Messages between the launcher and the process in the fence: JSON, with open files beside it. Knows one
socket; not what is said.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterable
from typing import Any

_SIZE = struct.Struct("=I")
_MOST_HANDLES = 8


class Line:
    """One end of a pair."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, members: dict[str, Any], handles: Iterable[int] = ()) -> None:
        # ASCII: what cannot be decoded in an environment is kept as lone surrogates, which JSON escapes.
        body = json.dumps(members).encode("ascii")
        socket.send_fds(self._end, [_SIZE.pack(len(body))], list(handles))
        self._end.sendall(body)

    def receive(self) -> tuple[dict[str, Any] | None, list[int]]:
        """The next message and its open files; None: the other side has gone."""
        head, handles, _, _ = socket.recv_fds(
            self._end, _SIZE.size, _MOST_HANDLES, socket.MSG_CMSG_CLOEXEC
        )
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


def pair() -> tuple[Line, Line]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Line(one), Line(other)
