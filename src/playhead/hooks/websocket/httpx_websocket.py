"""WebSockets over httpx and httpx2: after a handshake, the client uses the network stream directly.

So the network stream is wrapped, and only then; every WebSocket library on top of httpx reads and writes
there. Knows network streams and frames; does not know what is recorded.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from playhead.hooks.http.exchange import Exchange
from playhead.hooks.websocket import websocket_frames as frames
from playhead.hooks.websocket.conversation import Talk, TapedPeer

if TYPE_CHECKING:
    from playhead.recording.calls import Taped


class _Ear:
    """Frames as they pass, told to the talk."""

    def __init__(self, exchange: Exchange) -> None:
        self._talk = Talk(exchange)
        self._sent = frames.FrameReader()
        self._received = frames.FrameReader()

    def sent(self, data: bytes) -> None:
        for frame in self._sent.read(data):
            if frame.opcode == frames.CLOSE:
                self._talk.closed(*frames.decode_close(frame.payload), "agent")
            elif frame.opcode in {frames.TEXT, frames.BINARY}:
                self._talk.sent(_message(frame))

    def received(self, data: bytes) -> None:
        if not data:
            self._talk.exchange.cut(why="the connection was lost without a closing handshake")
        for frame in self._received.read(data):
            if frame.opcode == frames.CLOSE:
                self._talk.closed(*frames.decode_close(frame.payload), "peer")
            elif frame.opcode in {frames.TEXT, frames.BINARY}:
                self._talk.received(_message(frame))


def _message(frame: frames.Frame) -> str | bytes:
    if frame.opcode == frames.BINARY:
        return frame.payload
    return frame.payload.decode("utf-8", "surrogatepass")


class HeardStream:
    """A network stream with an ear on it; whatever else it can do, it still can."""

    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._ear = _Ear(exchange)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = self._stream.read(max_bytes, timeout)
        self._ear.received(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._ear.sent(bytes(buffer))
        self._stream.write(buffer, timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class AsyncHeardStream:
    """The same, asynchronous."""

    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._ear = _Ear(exchange)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = await self._stream.read(max_bytes, timeout)
        self._ear.received(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._ear.sent(bytes(buffer))
        await self._stream.write(buffer, timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class TapedStream:
    """A network stream with a tape at its other end."""

    def __init__(self, taped: Taped) -> None:
        self._peer = TapedPeer(taped)
        self._news = threading.Condition()
        self._ready = self._peer.begin()
        self._closed = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with self._news:
            self._news.wait_for(lambda: self._ready or self._closed or self._peer.over, timeout)
            data, self._ready = self._ready[:max_bytes], self._ready[max_bytes:]
            return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with self._news:
            self._ready += self._peer.feed(bytes(buffer))
            self._news.notify_all()

    def close(self) -> None:
        with self._news:
            self._closed = True
            self._news.notify_all()

    def get_extra_info(self, info: str) -> None:
        return None


class AsyncTapedStream:
    """The same, asynchronous: under anyio, which httpx brings for every event loop."""

    def __init__(self, taped: Taped) -> None:
        self._peer = TapedPeer(taped)
        self._news = sys.modules["anyio"].Event()
        self._ready = self._peer.begin()
        self._closed = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while not (self._ready or self._closed or self._peer.over):
            await self._news.wait()
            self._news = sys.modules["anyio"].Event()
        data, self._ready = self._ready[:max_bytes], self._ready[max_bytes:]
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._ready += self._peer.feed(bytes(buffer))
        self._news.set()

    async def aclose(self) -> None:
        self._closed = True
        self._news.set()

    def get_extra_info(self, info: str) -> None:
        return None
