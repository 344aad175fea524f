"""Forward a request to the real server and pass its response on, byte for byte, as it arrives.

Knows TLS and the tunnels of corporate networks. Opens one server connection per client connection. Does not know
tapes.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import os
import socket
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from playhead.hooks.http.exchange import Exchange
from playhead.hooks.http.http1 import AnswerReader, NotHttp
from playhead.launch.proxy.proxied_request import ProxiedRequest, passed_on
from playhead.launch.proxy.routes import Origin

if TYPE_CHECKING:
    from playhead.launch.proxy.connection import Client


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_PIECE = 64 * 1024
_LONGEST_CONNECT_S = 60.0


class NoTunnel(ConnectionError):
    """The network's own proxy does not let us through."""


async def connect(origin: Origin, env: Mapping[str, str]) -> Stream:
    """Connect to that server. OSError: the connection failed."""
    try:
        return await asyncio.wait_for(_connect(origin, env), _LONGEST_CONNECT_S)
    except asyncio.TimeoutError:
        raise TimeoutError(f"{origin} does not answer") from None


async def _connect(origin: Origin, env: Mapping[str, str]) -> Stream:
    host = origin.host.strip("[]")
    if origin.scheme == "http":
        return await asyncio.open_connection(host, origin.port, limit=_PIECE)
    tunnel = _tunnel(origin, env)
    if tunnel is None:
        return await asyncio.open_connection(
            host, origin.port, limit=_PIECE, ssl=context(), server_hostname=host
        )
    return await _through(tunnel, origin, host)


async def _through(tunnel: str, origin: Origin, host: str) -> Stream:
    """Open a tunnel through the network's proxy first, on the bare socket: if a stream were replaced, its `__del__`
    would close the connection.
    """
    where = urlsplit(tunnel if "://" in tunnel else f"http://{tunnel}")
    loop = asyncio.get_running_loop()
    (family, _, _, _, address), *_ = await loop.getaddrinfo(
        where.hostname, where.port or 80, type=socket.SOCK_STREAM
    )
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        await loop.sock_connect(connection, address)
        await loop.sock_sendall(connection, _asking(where, f"{host}:{origin.port}"))
        await _let_through(connection)
        return await asyncio.open_connection(
            sock=connection, limit=_PIECE, ssl=context(), server_hostname=host
        )
    except BaseException:
        connection.close()
        raise


async def _let_through(connection: socket.socket) -> None:
    """Read the answer of the network's proxy. NoTunnel carries that answer."""
    loop = asyncio.get_running_loop()
    answer = b""
    while not answer.endswith(b"\r\n\r\n") and (more := await loop.sock_recv(connection, 4096)):
        answer += more
    if answer.split(b" ", 2)[1:2] != [b"200"]:
        said = answer.partition(b"\r\n")[0].decode("latin-1")
        raise NoTunnel(f"the network's own proxy responded {said!r}")


def _asking(where: SplitResult, place: str) -> bytes:
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if where.username:
        secret = f"{unquote(where.username)}:{unquote(where.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(secret.encode()).decode()}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _tunnel(origin: Origin, env: Mapping[str, str]) -> str | None:
    """Return the network's own proxy for this server, from the variables that curl and other tools read."""
    names = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    proxy = next((env[name] for name in names if env.get(name)), None)
    spared = env.get("no_proxy") or env.get("NO_PROXY") or ""
    return None if _is_spared(origin.host, spared) else proxy


def _is_spared(host: str, spared: str) -> bool:
    for word in spared.replace(" ", "").lower().split(","):
        name = word.partition(":")[0].lstrip("*").lstrip(".")
        if word == "*" or (name and (host == name or host.endswith(f".{name}"))):
            return True
    return False


@functools.cache
def context() -> ssl.SSLContext:
    """The trusted certificates: those of the system and SSL_CERT_FILE, and those of NODE_EXTRA_CA_CERTS."""
    made = ssl.create_default_context()
    if extra := os.environ.get("NODE_EXTRA_CA_CERTS"):
        with contextlib.suppress(OSError):
            made.load_verify_locations(extra)
    made.set_alpn_protocols(["http/1.1"])
    return made


_PIECE = 64 * 1024
# A client that gets the end of its connection together with the last bytes may never read those bytes. The live proxy
# and the replay both wait this long, so that a replayed cut stream has the same effect on the client.
LAST_BYTES_S = 0.05
_MOST_SIZES = 4096


class LiveServer:
    """The server's end of a client's connection. Kept open as long as the client keeps its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stream: Stream | None = None
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
        """Close the connection at once: the client has left."""
        if self._stream is not None:
            self._stream[1].transport.abort()

    async def answer(self, exchange: Exchange, asked: ProxiedRequest, origin: Origin) -> bool:
        """Forward the request and relay the answer. Return whether the client's connection can be used again."""
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
        """Send the request. Return the reader of its answer, and the first bytes of the answer."""
        raw = passed_on(asked, origin.authority, body)
        if self._stream is not None and self._origin == origin and not self._stream[0].at_eof():
            try:
                return await self._sent(raw)
            except (OSError, EOFError):
                # The server had closed the connection by then: every client retries in this case.
                if self._client.has_left:
                    raise
        self.close()
        self._stream, self._origin = await connect(origin, self._client.env), origin
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
            raise EOFError("the server closed the connection without a response")
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
        """Record that the stream ended before the answer did."""
        if self._client.has_left:
            exchange.left(**facts)
        else:
            exchange.cut(**facts)

    def _fail(self, exchange: Exchange, error: Exception) -> None:
        """Break the connection, as the client would have seen it without us."""
        if self._client.has_left:
            exchange.left()
        else:
            exchange.failed(error)
        self._client.writer.transport.abort()

    def _drop(self) -> bool:
        self.close()
        return False


def _sizes(answer: AnswerReader) -> dict[str, list[int]]:
    """Return the sizes of the chunks, so that a replay frames its pieces as the server did."""
    sizes = answer.chunks.sizes if answer.chunks is not None else []
    return {"sizes": sizes} if 0 < len(sizes) <= _MOST_SIZES else {}


def _goes_on(answer: AnswerReader) -> bool:
    """Return whether the server keeps the connection open; the client has received the same headers."""
    if answer.head is None:
        return False
    words = (answer.head.value("connection") or "").lower()
    framed = answer.chunks is not None or answer.head.value("content-length") is not None
    bodiless = answer.head.status in {204, 304}
    return "close" not in words and answer.head.version == "HTTP/1.1" and (framed or bodiless)
