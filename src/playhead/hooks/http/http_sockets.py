"""Observe the socket under http.client's responses, or put a taped answer in its place.

Knows `socket.SocketIO` and how http.client reads; does not know requests. http.client's own parser runs in both
cases, so chunks, compression, cut bodies and their exceptions are the client's own.
"""

from __future__ import annotations

import functools
import io
import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import NotAsExpected
from playhead.hooks.http import http1, served
from playhead.hooks.http.listener import Listener
from playhead.recording.crossing import END

if TYPE_CHECKING:
    from playhead.hooks.http.exchange import Exchange


class HeardSocketIO(socket.SocketIO):
    """Reads from a socket and reports to a listener. The class of an existing instance is changed to this one, so
    that objects that hold the instance (a buffered reader, urllib3, docker's attach) keep the same object.
    """

    playhead: Listener

    def readinto(self, buffer: Any) -> int | None:
        try:
            count = super().readinto(buffer)
        except BaseException as error:
            self.playhead.broke(error)
            raise
        if count:
            self.playhead.feed(bytes(memoryview(buffer)[:count]))
        elif count == 0:
            self.playhead.eof()
        return count

    def close(self) -> None:
        self.playhead.closed()
        super().close()


def listen(fp: Any, listener: Listener) -> None:
    """Observe the bytes that http.client reads from `fp`. Raise NotAsExpected if `fp` is not the file of a socket."""
    raw = getattr(fp, "raw", None)
    if type(raw) is not socket.SocketIO:
        raise NotAsExpected(f"the response is read from {type(raw).__name__}, not from SocketIO")
    raw.playhead = listener  # type: ignore[attr-defined]  # it is about to become one that has it
    raw.__class__ = HeardSocketIO


class TapedAnswer:
    """Replaces the socket of an http.client response. Its file reads the taped answer."""

    def __init__(self, exchange: Exchange, listener: Listener | None) -> None:
        self._raw = _TapedIO(exchange, listener)

    def makefile(self, mode: str = "rb", buffering: int = -1, **_: Any) -> Any:
        return self._raw if buffering == 0 else io.BufferedReader(self._raw)


class _TapedIO(io.RawIOBase):
    """Reads a taped answer block by block, as from a socket."""

    def __init__(self, exchange: Exchange, listener: Listener | None) -> None:
        super().__init__()
        self._blocks = _wire(exchange)
        self._rest = b""
        self._listener = listener

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            if not self._rest:
                self._rest = next(self._blocks, b"")
        except Exception as error:
            if self._listener is not None:
                self._listener.broke(error)
            raise
        piece, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(piece)] = piece
        if self._listener is None:
            return len(piece)
        if piece:
            self._listener.feed(piece)
        else:
            self._listener.eof()
        return len(piece)

    def close(self) -> None:
        if self._listener is not None and not self.closed:
            self._listener.closed()
        super().close()


def _wire(exchange: Exchange) -> Iterator[bytes]:
    taped, reach = served.taped_of(exchange), exchange.crossing.reach
    pieces = [(point, one.data) for point, one in enumerate(taped.pieces) if one.stream == "body"]
    whole = taped.how == "returned"
    sizes = taped.facts.get("sizes") or ()
    blocks = http1.blocks(taped.head, [data for _, data in pieces], whole=whole, sizes=sizes)
    # A block for the head, one for each piece, and maybe one that ends a chunked body.
    yield next(blocks)
    for block, point in zip(blocks, [*(point for point, _ in pieces), END], strict=False):
        reach(point)
        yield block
    if whole or (taped.how == "cut" and taped.error is None):
        return  # the end of the connection: the client decides whether that is an error
    if taped.how == "left":
        reach(END)
    raise served.ending(taped, exchange.name, ConnectionResetError)


class Unconnected:
    """Replaces a connection's socket while answers come from the tape.

    Its descriptor is at end-of-file, so a pool that checks it before the next request drops the connection
    and connects again: a connection never outlives the replay it was made in.
    """

    family = socket.AF_INET
    type = socket.SOCK_STREAM

    # urllib3 polls the descriptor of an idle connection (`wait_for_read`) before it reuses it.
    def fileno(self) -> int:
        return _ended()

    def settimeout(self, timeout: float | None) -> None:
        """Do nothing: a taped answer never blocks."""

    def gettimeout(self) -> float | None:
        return None

    def setsockopt(self, *option: Any) -> None:
        """Do nothing: there is no socket to configure."""

    # urllib3 checks host names and fingerprints with it.
    def getpeercert(self, binary_form: bool = False) -> Any:
        return b"" if binary_form else {}

    def sendall(self, data: Any, flags: int = 0) -> None:
        # The error of a socket whose peer has closed: clients drop the connection and open another.
        raise BrokenPipeError(32, "this connection was served from a tape and is closed")

    send = sendall

    def makefile(self, *_: Any, **__: Any) -> Any:
        return io.BufferedReader(io.BytesIO())

    def shutdown(self, how: int) -> None:
        """Do nothing: there is no peer."""

    def close(self) -> None:
        """Do nothing: all connections share the descriptor."""


@functools.cache
def _ended() -> int:
    """Return a descriptor whose other end is closed. All connections share one, opened when first needed."""
    ours, theirs = os.pipe()
    os.close(theirs)
    return ours
