"""Parse an answer from the bytes of a connection and report it to the exchange.

Knows HTTP/1 framing and how an answer can end; does not know which client owns the connection.
"""

from __future__ import annotations

from playhead.hooks.http.exchange import Exchange
from playhead.hooks.http.http1 import AnswerReader

_MOST_SIZES = 100_000


class Listener:
    """Takes every byte that arrives, and the end of the stream of any kind. Never raises."""

    __slots__ = ("_exact", "_lost", "_reader", "exchange")

    def __init__(self, exchange: Exchange, method: str) -> None:
        self.exchange = exchange
        self._reader = AnswerReader(method)
        self._exact = True
        self._lost = False

    @property
    def upgraded(self) -> bool:
        """The connection has switched to another protocol (a WebSocket), which another hook reports."""
        head = self._reader.head
        return head is not None and head.status == 101

    def feed(self, data: bytes) -> None:
        """Take bytes as they arrived from the socket."""
        exchange, reader = self.exchange, self._reader
        begun = reader.head is not None
        if self._lost or exchange.ended or (begun and self.upgraded):
            return
        seen = len(reader.chunks.sizes) if reader.chunks else 0
        try:
            payload = reader.read(data)
        except ValueError as error:  # not HTTP: the client will raise its own error
            self._lost = True
            exchange.left(why=str(error))
            return
        if not begun and (head := reader.head) is not None:
            if reader.done and head.status != 101 and reader.chunks is None:
                exchange.whole(head.status, head.reason, head.version, head.headers, payload)
                return
            exchange.head(head.status, head.reason, head.version, head.headers)
        if payload:
            exchange.chunk(payload)
            if reader.chunks and self._exact:
                self._exact = reader.chunks.sizes[seen:] == [len(payload)]
        if reader.done and not self.upgraded:
            exchange.returned(**self._facts())

    def eof(self) -> None:
        """Report that the other side has closed the connection."""
        if self._reader.end():
            self.exchange.returned(**self._facts())
        elif self._reader.head is not None:
            self.exchange.cut(**self._facts())

    def broke(self, error: BaseException) -> None:
        """Report that reading failed with this error, which the client is about to get."""
        if self._reader.head is not None:
            self.exchange.failed(error, **self._facts())

    def closed(self) -> None:
        """Report that the agent has closed its side."""
        if self._reader.head is not None and not self.upgraded:
            self.exchange.left(**self._facts())

    def _facts(self) -> dict[str, list[int]]:
        """Return the sizes of the chunks if they differ from those of the pieces. A replay needs them."""
        chunks = self._reader.chunks
        if chunks is None or self._exact or len(chunks.sizes) > _MOST_SIZES:
            return {}
        return {"sizes": chunks.sizes}
