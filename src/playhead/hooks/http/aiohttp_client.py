"""aiohttp's client: announced where a connection is asked for, heard where its bytes come in.

`BaseConnector.connect` is one attempt of one request (redirects and retries come back to it);
`ResponseHandler.data_received` sees every byte before the real parser does. Knows aiohttp's
connections and payloads; a taped answer is fed to the same parser by `aiohttp_served`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

from playhead.hooks.guest import NotAsExpected, Patches, need
from playhead.hooks.http.aiohttp_served import Player, Server
from playhead.hooks.http.exchange import STREAMED, Exchange, begin
from playhead.hooks.http.listener import Listener
from playhead.hooks.websocket import aiohttp_websocket
from playhead.recording import deck

_KEY = "_playhead"


class Heard:
    """What is known of the exchange that a connection is busy with."""

    __slots__ = ("exchange", "listener", "player", "streamed", "timer")

    def __init__(self, exchange: Exchange, request: Any, *, streamed: bool) -> None:
        self.exchange = exchange
        self.listener = Listener(exchange, request.method)
        self.streamed = streamed
        self.player: Player | None = None
        # Says whether the request's total timeout has passed.
        self.timer = getattr(request, "_timer", None)


def hook(module: ModuleType, patches: Patches) -> None:
    connector, proto = module.connector, module.client_proto
    need(connector, "BaseConnector", "Connection")
    need(proto.ResponseHandler, "connection_lost", "set_response_params")
    need(module.payload, "BytesPayload")
    if not hasattr(proto.ResponseHandler, "__dict__"):
        raise NotAsExpected("ResponseHandler takes no attribute of ours")
    around = _Around(module)
    patches.replace(connector.BaseConnector, "connect", around.connect)
    patches.replace(connector.Connection, "close", _around_let_go)
    patches.replace(connector.Connection, "release", _around_let_go)
    patches.replace(proto.ResponseHandler, "data_received", _around_data_received)
    patches.replace(proto.ResponseHandler, "connection_lost", _around_connection_lost)
    patches.replace(module.http_writer.StreamWriter, "write", _around_write)
    aiohttp_websocket.hook(module.client_ws, patches)


def heard_on(protocol: Any) -> Heard | None:
    """The exchange that this connection's protocol is busy with."""
    # A server's protocols are written to by the same writer, and have no room for attributes.
    heard: Heard | None = getattr(protocol, _KEY, None)
    return heard


class _Around:
    def __init__(self, module: ModuleType) -> None:
        self._plain = module.payload.BytesPayload
        self._server = Server(module)

    def connect(self, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def connect(connector: Any, req: Any, *args: Any, **kwargs: Any) -> Any:
            if deck.active() is None:
                return await original(connector, req, *args, **kwargs)
            body = self._body(req)
            exchange = _begin(req, body)
            if exchange is None:
                return await original(connector, req, *args, **kwargs)
            try:
                if exchange.taped is not None:
                    connection = await self._server.connect(connector, req, exchange)
                else:
                    if exchange.instead is not None:
                        await _rewrite(req, exchange.instead)
                    with exchange.crossing:
                        connection = await original(connector, req, *args, **kwargs)
            except BaseException as error:
                exchange.failed(error, stage="connect")
                raise
            told = connection.protocol.__dict__
            earlier = told.get(_KEY)
            if earlier is not None:
                earlier.exchange.left()
            heard = told[_KEY] = Heard(exchange, req, streamed=body is STREAMED)
            heard.player = told.get("playhead_player")
            return connection

        return connect

    def _body(self, req: Any) -> Any:
        body = req.body
        if not body:
            return None
        if isinstance(body, (bytes, bytearray)):
            return bytes(body)
        # Compressed on its way out: what goes over the wire is not what the agent holds.
        is_plain = type(body) is self._plain or isinstance(body, self._plain)
        if is_plain and not getattr(req, "compress", None):
            return bytes(body._value)
        return STREAMED


def _begin(req: Any, body: Any) -> Exchange | None:
    return begin(
        library="aiohttp",
        method=str(req.method),
        url=str(req.url),
        headers=list(req.headers.items()),
        body=body,
        # Before 3.12 a request's body could not be exchanged.
        rewrites=hasattr(req, "update_body"),
    )


async def _rewrite(req: Any, body: bytes) -> None:
    kind = req.headers.get("Content-Type")
    await req.update_body(body)
    if kind is not None:
        req.headers["Content-Type"] = kind


def _around_data_received(original: Callable[..., None]) -> Callable[..., None]:
    def data_received(self: Any, data: bytes) -> None:
        heard = self.__dict__.get(_KEY)
        # Without a parser the bytes are put aside and come here once more; no bytes: no news.
        if heard is not None and data and self._parser is not None:
            heard.listener.feed(bytes(data))
        original(self, data)

    return data_received


def _around_connection_lost(original: Callable[..., None]) -> Callable[..., None]:
    def connection_lost(self: Any, exc: BaseException | None) -> None:
        heard = self.__dict__.pop(_KEY, None)
        original(self, exc)
        if heard is None or heard.exchange.ended:
            return
        if heard.exchange.status is None:
            # What the client makes of it, and the agent is about to see.
            heard.exchange.failed(self.exception() or exc or ConnectionError("connection lost"))
        elif exc is None:
            heard.listener.eof()
        else:
            heard.listener.broke(exc)

    return connection_lost


def _around_let_go(original: Callable[..., None]) -> Callable[..., None]:
    """Around `Connection.close` and `release`: whatever has not come by then never will."""

    def let_go(self: Any) -> None:
        heard = getattr(self._protocol, _KEY, None)
        if heard is not None and not heard.exchange.ended:
            error = self._protocol.exception()
            if error is None and getattr(heard.timer, "_cancelled", False):
                error = asyncio.TimeoutError()
            if error is not None:
                heard.exchange.failed(error)
            else:
                heard.exchange.left()
        original(self)

    return let_go


def _around_write(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    def write(self: Any, chunk: Any, *args: Any, **kwargs: Any) -> Awaitable[None]:
        heard = getattr(self._protocol, _KEY, None)  # a server's has no room for attributes
        if heard is not None and heard.streamed:
            heard.exchange.chunk(bytes(chunk), "sent")
            if heard.player is not None:
                heard.player.took(len(chunk))
        return original(self, chunk, *args, **kwargs)

    return write
