"""A taped conversation behind a real socket, for clients that insist on one.

Both ends are in this process: no network is touched. Knows socket pairs and the opening handshake
on the wire; what is said afterwards is `TapedPeer`'s business.
"""

from __future__ import annotations

import _thread
import re
import socket
from typing import TYPE_CHECKING, Any

from playhead.hooks.http import http1
from playhead.hooks.websocket.conversation import TapedPeer
from playhead.hooks.websocket.websocket_frames import accept_key

if TYPE_CHECKING:
    from playhead.recording.calls import Taped

_KEY = re.compile(rb"^sec-websocket-key:\s*(\S+)\s*$", re.IGNORECASE | re.MULTILINE)
_OF_THE_HANDSHAKE = ("sec-websocket-accept", "sec-websocket-extensions")


class _Pair(socket.socket):
    """One end of a pair of Unix sockets that a client takes for a TCP connection."""

    def setsockopt(self, level: int, *option: Any) -> None:
        if level != socket.IPPROTO_TCP:
            super().setsockopt(level, *option)


def taped_socket(taped: Taped) -> socket.socket:
    """A connected socket; at its other end the tape answers."""
    theirs, ours = socket.socketpair()
    # Below `threading`, so that it has no lane: the host's own threads must be counted as they
    # were when the run was recorded.
    _thread.start_new_thread(_serve, (ours, taped))
    return _Pair(fileno=theirs.detach())


def upgraded(head: dict[str, Any], key: str) -> dict[str, Any]:
    """The head of a taped handshake, answering this client's key; no extension is spoken."""
    pairs = head.get("headers") or ()
    kept = [pair for pair in pairs if pair[0].lower() not in _OF_THE_HANDSHAKE]
    return {**head, "headers": [*kept, ["Sec-WebSocket-Accept", accept_key(key)]]}


def _serve(ours: socket.socket, taped: Taped) -> None:
    with ours:
        try:
            _converse(ours, taped)
        except OSError:
            return  # the agent has closed its end: that is how conversations end


def _converse(ours: socket.socket, taped: Taped) -> None:
    asked = b""
    while b"\r\n\r\n" not in asked:
        data = ours.recv(65536)
        if not data:
            return
        asked += data
    if taped.head["status"] != 101:
        pieces = [piece.data for piece in taped.pieces if piece.stream == "body"]
        for block in http1.blocks(taped.head, pieces, whole=True):
            ours.sendall(block)
        return
    key = _KEY.search(asked)
    head = upgraded(taped.head, key.group(1).decode("latin-1") if key else "")
    for block in http1.blocks(head, (), whole=True):
        ours.sendall(block)
    peer = TapedPeer(taped)
    ours.sendall(peer.begin())
    while not peer.over:
        data = ours.recv(65536)
        if not data:
            return
        ours.sendall(peer.feed(data))
