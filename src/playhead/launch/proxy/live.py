"""Ask the real server, and pass on what comes, byte for byte as it comes. Knows one connection to a
server for each of a client's; not what a tape is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from playhead.hooks.http.exchange import Exchange
from playhead.hooks.http.http1 import AnswerReader, NotHttp
from playhead.launch.proxy import upstream
from playhead.launch.proxy.proxied_request import ProxiedRequest, passed_on
from playhead.launch.proxy.routes import Origin

if TYPE_CHECKING:
    from playhead.launch.proxy.connection import Client

_PIECE = 64 * 1024
# A client that gets the end of its connection along with the last bytes may never look at those. So
# that a replay of a cut stream meets the same client, both give it the time.
LAST_BYTES_S = 0.05
_MOST_SIZES = 4096


class LiveServer:
    """The server's end of a client's connection. Kept open as long as the client keeps its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stream: upstream.Stream | None = None
        self._origin: Origin | None = None

    @property
    def writer(self) -> asyncio.StreamWriter:
        if self._stream is None:
            raise ConnectionResetError("the connection is closed")
        return self._stream[1]

    def close(self) -> None:
        if self._stream is not None:
            self._stream[1].close()
            self._stream = None

    def abort(self) -> None:
        """The client has left: so do we, now."""
        if self._stream is not None:
            self._stream[1].transport.abort()

    async def answer(self, exchange: Exchange, asked: ProxiedRequest, origin: Origin) -> bool:
        """Whether the client's connection can be used again."""
        body = asked.body if exchange.instead is None else exchange.instead
        try:
            reader, first = await self.ask(asked, origin, body)
            return await self._relay(exchange, asked, reader, first)
        except (OSError, EOFError) as error:
            self._fail(exchange, error)
            return False
        except asyncio.CancelledError:
            exchange.left()
            raise
        finally:
            self._client.when_left(None)

    async def ask(
        self, asked: ProxiedRequest, origin: Origin, body: bytes
    ) -> tuple[asyncio.StreamReader, bytes]:
        """Send the request; the reader of its answer, and the first bytes of that."""
        raw = passed_on(asked, origin.authority, body)
        if self._stream is not None and self._origin == origin and not self._stream[0].at_eof():
            try:
                return await self._sent(raw)
            except (OSError, EOFError):
                # A connection that the server had closed by then: every client asks again.
                if self._client.has_left:
                    raise
        self.close()
        self._stream, self._origin = await upstream.connect(origin, self._client.env), origin
        return await self._sent(raw)

    async def _sent(self, raw: bytes) -> tuple[asyncio.StreamReader, bytes]:
        if self._stream is None:
            raise ConnectionResetError("the connection is closed")
        reader, writer = self._stream
        self._client.when_left(self.abort)
        writer.write(raw)
        await writer.drain()
        first = await reader.read(_PIECE)
        if not first:
            raise EOFError("the server closed the connection without an answer")
        return reader, first

    async def _relay(
        self, exchange: Exchange, asked: ProxiedRequest, reader: asyncio.StreamReader, data: bytes
    ) -> bool:
        answer = AnswerReader(asked.method)
        client = self._client.writer
        try:
            while data:
                client.write(data)
                payload = answer.read(data)
                if exchange.status is None and answer.head is not None:
                    exchange.head(*answer.head)
                if payload:
                    exchange.chunk(payload)
                if answer.done:
                    break
                await client.drain()
                data = await reader.read(_PIECE)
        except NotHttp as error:
            exchange.failed(error)
            return self._drop()
        if not answer.done and not (answer.end() and not self._client.has_left):
            if not self._client.has_left:
                await asyncio.sleep(LAST_BYTES_S)
            self._broken(exchange, _sizes(answer))
            return self._drop()
        exchange.returned(**_sizes(answer))
        await client.drain()
        return asked.keeps_alive and _goes_on(answer)

    def _broken(self, exchange: Exchange, facts: dict[str, list[int]]) -> None:
        """The stream ended before the answer did."""
        if self._client.has_left:
            exchange.left(**facts)
        else:
            exchange.cut(**facts)

    def _fail(self, exchange: Exchange, error: Exception) -> None:
        """As the client would have met it without us: a connection that breaks."""
        if self._client.has_left:
            exchange.left()
        else:
            exchange.failed(error)
        self._client.writer.transport.abort()

    def _drop(self) -> bool:
        self.close()
        return False


def _sizes(answer: AnswerReader) -> dict[str, list[int]]:
    """Those of the chunks, so that a replay frames its pieces as the server did."""
    sizes = answer.chunks.sizes if answer.chunks is not None else []
    return {"sizes": sizes} if 0 < len(sizes) <= _MOST_SIZES else {}


def _goes_on(answer: AnswerReader) -> bool:
    """Whether the server keeps the connection open; what it told us it told the client, too."""
    if answer.head is None:
        return False
    words = (answer.head.value("connection") or "").lower()
    framed = answer.chunks is not None or answer.head.value("content-length") is not None
    bodiless = answer.head.status in {204, 304}
    return "close" not in words and answer.head.version == "HTTP/1.1" and (framed or bodiless)
