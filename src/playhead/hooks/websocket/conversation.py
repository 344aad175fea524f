"""Record and serve a conversation over a WebSocket: one exchange from its handshake to its close.

Knows messages and their order; does not know any library. The hooks report to `Conversation` what the agent sends and
receives. `TapedPeer` is the other side of a taped conversation, as bytes; `taped_socket` puts it behind a socket
pair for clients that need a real socket. Both ends are in this process, so no network is touched.
"""

from __future__ import annotations

import _thread
import json
import re
import socket
from collections import deque
from typing import TYPE_CHECKING, Any

from playhead import clock
from playhead.errors import Divergence
from playhead.hooks.http import http1
from playhead.hooks.http.exchange import Exchange
from playhead.hooks.websocket import websocket_frames as frames
from playhead.hooks.websocket.websocket_frames import accept_key
from playhead.host.later import Later
from playhead.recording.deck import MESSAGES

if TYPE_CHECKING:
    from playhead.recording.calls import Piece, Taped
    from playhead.replay.matching import normalise as settled
else:
    settled = Later("playhead.replay.matching.normalise")  # a recorded program never loads it


Message = str | bytes

# The last event of a model's answer, in the Responses and in the Realtime API.
_ANSWERED = (b'"response.completed"', b'"response.done"', b'"response.incomplete"')


class Conversation:
    """The agent's side of a conversation."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self._answer: list[bytes] = []
        taped = exchange.taped
        self._expected: deque[Piece] | None = None
        if taped is not None:
            self._expected = deque(p for p in taped.pieces if p.stream.startswith("sent"))
        # Messages of the tape that the program has yet to receive, by their index in `taped.pieces`.
        self._coming: deque[int] = deque(
            index
            for index, piece in enumerate(() if taped is None else taped.pieces)
            if piece.stream.startswith("received")
        )

    def reach_next(self) -> None:
        """Wait, in a replay, for the place of the message that the client gets next."""
        if self._coming:
            self.exchange.crossing.reach(self._coming.popleft())

    async def reach_next_async(self) -> None:
        """Do the same as `reach_next`, while other tasks run."""
        if self._coming:
            await self.exchange.crossing.reach_async(self._coming.popleft())

    def reach_end(self) -> None:
        """Wait, in a replay, for the place where the client learns that the conversation is over."""
        if self.exchange.taped is not None:
            self.exchange.crossing.reach_last()

    async def reach_end_async(self) -> None:
        if self.exchange.taped is not None:
            await self.exchange.crossing.reach_last_async()

    def sent(self, message: Message) -> None:
        """Report a message that the agent sends. In a replay, raise a Divergence if it differs from the tape."""
        stream, raw = _piece("sent", message)
        if self._expected is not None:
            self._compare(stream, raw)
        self._answer.clear()
        self.exchange.chunk(raw, stream)

    def received(self, message: Message) -> None:
        stream, raw = _piece("received", message)
        self.exchange.chunk(raw, stream)
        self._answer.append(raw)
        if any(word in raw for word in _ANSWERED):
            # Report the response now: the tool calls in it must be known before the socket closes.
            self.exchange.heard(b"\n".join(self._answer))
            self._answer.clear()

    @property
    def is_at_rest(self) -> bool:
        """Whether no more messages are expected: the last answer is complete, or nothing was requested."""
        return not self._answer

    def closed(self, code: int | None, reason: str, by: str) -> None:
        """Report that one side (`agent` or `peer`) has closed the conversation properly."""
        self.exchange.returned(close={"code": code, "reason": reason, "by": by})

    def _compare(self, stream: str, raw: bytes) -> None:
        expected = self._expected.popleft() if self._expected else None
        if expected is None:
            raise Divergence(
                f"The agent sends one more message over {self.exchange.name} than the tape has: "
                f"{_short(raw)}. Record the run again, or let this socket go live."
            )
        if expected.stream != stream or not alike(expected.data, raw):
            raise Divergence(
                f"A message over {self.exchange.name} differs from its tape.\n"
                f"Taped: {_short(expected.data)}\nNow:   {_short(raw)}\n"
                "Record the run again, or let this socket go live."
            )


class TapedPeer:
    """The other side of a taped conversation. Takes the client's bytes, and returns the server's."""

    def __init__(self, taped: Taped) -> None:
        self._ahead = deque(p for p in taped.pieces if p.stream in MESSAGES)
        self._reader = frames.FrameReader()
        self._how = taped.how
        close = taped.facts.get("close")
        self._close: dict[str, Any] = close if isinstance(close, dict) else {}
        self._said_goodbye = False
        # Whether the conversation and its connection are over.
        self.over = False

    def begin(self) -> bytes:
        """Return the bytes that the server sends right after the handshake."""
        return self._until_sent()

    def feed(self, data: bytes) -> bytes:
        """Return the bytes that answer these bytes of the client."""
        answer = b""
        for frame in self._reader.read(data):
            if frame.opcode in {frames.TEXT, frames.BINARY}:
                if self._ahead and self._ahead[0].stream.startswith("sent"):
                    self._ahead.popleft()
                answer += self._until_sent()
            elif frame.opcode == frames.PING:
                answer += frames.encode(frames.PONG, frame.payload)
            elif frame.opcode == frames.CLOSE:
                self.over = True
                if not self._said_goodbye:
                    answer += frames.encode(frames.CLOSE, frame.payload)
        return answer

    def _until_sent(self) -> bytes:
        answer = b""
        while self._ahead and self._ahead[0].stream.startswith("received"):
            piece = self._ahead.popleft()
            opcode = frames.BINARY if piece.stream.endswith(".bytes") else frames.TEXT
            answer += frames.encode(opcode, piece.data)
        if self._ahead:
            return answer
        if self._close.get("by") == "peer" and not self._said_goodbye:
            self._said_goodbye = True
            reason = str(self._close.get("reason") or "")
            answer += frames.encode_close(self._close.get("code"), reason)
        elif self._how == "cut":
            self.over = True
        return answer


def _piece(direction: str, message: Message) -> tuple[str, bytes]:
    if isinstance(message, str):
        return direction, message.encode("utf-8", "surrogatepass")
    return f"{direction}.bytes", bytes(message)


def alike(taped: bytes, now: bytes) -> bool:
    """Return whether two messages are equal, or equal as JSON except for values that change in every run, such as the
    event's id, which clients of the Realtime API generate.
    """
    if taped == now:
        return True
    try:
        first, second = json.loads(taped), json.loads(now)
    except ValueError:
        return False
    if isinstance(first, dict) and isinstance(second, dict):
        first.pop("event_id", None)
        second.pop("event_id", None)
    return bool(first == second) or settled.settled_text(first) == settled.settled_text(second)


def _short(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    return text if len(text) <= 300 else f"{text[:300]}…"


_KEY = re.compile(rb"^sec-websocket-key:\s*(\S+)\s*$", re.IGNORECASE | re.MULTILINE)
_NAP_S = 0.000_2
_OF_THE_HANDSHAKE = ("sec-websocket-accept", "sec-websocket-extensions")


class _Pair(socket.socket):
    """One end of a pair of Unix sockets that a client takes for a TCP connection."""

    def setsockopt(self, level: int, *option: Any) -> None:
        if level != socket.IPPROTO_TCP:
            super().setsockopt(level, *option)


def taped_socket(taped: Taped) -> socket.socket:
    """Return a connected socket. At its other end, a thread answers from the tape."""
    theirs, ours = socket.socketpair()
    # Not with `threading`, so that the thread has no lane: the program's own threads must be counted as in the
    # recorded run.
    peer = _Peer(ours)
    _thread.start_new_thread(_serve, (peer, taped))
    # From here on the replay sees the thread. On a busy machine a thread that has just been started may not run for
    # a while, and the timeout of the handshake would come first.
    while not peer.has_begun:
        clock.sleep(_NAP_S)
    return _Pair(fileno=theirs.detach())


def upgraded(head: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the head of a taped handshake with the answer to this client's key, and without extensions."""
    pairs = head.get("headers") or ()
    kept = [pair for pair in pairs if pair[0].lower() not in _OF_THE_HANDSHAKE]
    return {**head, "headers": [*kept, ["Sec-WebSocket-Accept", accept_key(key)]]}


class _Peer:
    """The tape's end of the socket pair. The time of a replay stands still while it has to answer: see
    `replay.time.outside_activity`.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._is_answering = False
        self.has_begun = False
        self.sendall = sock.sendall
        self.close = sock.close

    def recv(self) -> bytes:
        """Return the next bytes of the client. Called when all bytes so far have been answered."""
        self._is_answering = False
        self._socket.recv(1, socket.MSG_PEEK)
        # Set before the bytes are read: until then the socket itself shows that there are bytes to answer.
        self._is_answering = True
        return self._socket.recv(65536)

    def is_idle(self) -> bool:
        """Return whether the client has sent nothing since the last answer. Called by another thread."""
        if self._is_answering:
            return False
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return not self._is_answering
        except OSError:
            return True  # closed
        return False


def _serve(peer: _Peer, taped: Taped) -> None:
    peer.has_begun = True
    try:
        _converse(peer, taped)
    except OSError:
        return  # the agent has closed its end: that is how conversations end
    finally:
        peer.close()


def _converse(ours: _Peer, taped: Taped) -> None:
    asked = b""
    while b"\r\n\r\n" not in asked:
        data = ours.recv()
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
    peer = TapedPeer(taped)
    # Together: messages that arrived with the handshake have no place of their own, so nothing would wait for them.
    ours.sendall(b"".join(http1.blocks(head, (), whole=True)) + peer.begin())
    while not peer.over:
        data = ours.recv()
        if not data:
            return
        ours.sendall(peer.feed(data))
