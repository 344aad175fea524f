"""Record and replay WebSockets over httpx and httpx2, whose clients use the network stream directly after a handshake.

The network stream is wrapped after such a handshake only. Every WebSocket library on top of httpx reads and writes
there. Knows network streams and frames; does not know what is recorded.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from playhead.hooks.http.exchange import Exchange
from playhead.hooks.websocket import websocket_frames as frames
from playhead.hooks.websocket.conversation import Conversation, TapedPeer

if TYPE_CHECKING:
    from playhead.recording.calls import Taped


class _FrameObserver:
    """Reports the frames of a stream to the conversation."""

    def __init__(self, exchange: Exchange) -> None:
        self._talk = Conversation(exchange)
        # One reader for each direction: a read or write may hold half a frame or several.
        self._sent = frames.FrameReader()
        self._received = frames.FrameReader()

    def sent(self, data: bytes) -> None:
        for frame in self._sent.read(data):
            if frame.opcode == frames.CLOSE:
                self._talk.closed(*frames.decode_close(frame.payload), "agent")
            elif frame.opcode in {frames.TEXT, frames.BINARY}:
                self._talk.sent(_message(frame))

    def received(self, data: bytes) -> None:
        # An empty read is end-of-file. After a close frame the exchange has ended already, and `cut` does
        # nothing.
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


class ObservedStream:
    """A network stream whose frames are reported; everything else is passed through."""

    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._observer = _FrameObserver(exchange)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = self._stream.read(max_bytes, timeout)
        self._observer.received(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # Before the write: the peer may answer before `write` returns. `bytes`, because the caller may reuse
        # its buffer.
        self._observer.sent(bytes(buffer))
        self._stream.write(buffer, timeout)

    def __getattr__(self, name: str) -> Any:
        # `start_tls`, `get_extra_info` and the rest stay those of the real stream.
        return getattr(self._stream, name)


class AsyncObservedStream:
    """The same, asynchronous."""

    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._observer = _FrameObserver(exchange)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = await self._stream.read(max_bytes, timeout)
        self._observer.received(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._observer.sent(bytes(buffer))
        await self._stream.write(buffer, timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class TapedStream:
    """A network stream with a tape at its other end."""

    def __init__(self, taped: Taped) -> None:
        self._peer = TapedPeer(taped)
        # A reader and a writer may be in different threads: wsproto-based clients keep a thread that reads.
        self._news = threading.Condition()
        self._ready = self._peer.begin()
        self._closed = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with self._news:
            # Waits as a real socket would, so that the program's own timeouts and order stay as recorded.
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
        # Looked up and not imported: httpx has loaded anyio if this runs, and a guest must not add imports.
        self._news = sys.modules["anyio"].Event()
        self._ready = self._peer.begin()
        self._closed = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        # No lock: all callers are tasks of one event loop, and nothing awaits between the test and the read.
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
