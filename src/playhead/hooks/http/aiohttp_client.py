"""aiohttp's client: a request is announced where its connection is opened, and observed where its bytes come in.

`BaseConnector.connect` is one attempt of one request (redirects and retries call it again), and
`ResponseHandler.data_received` sees every byte before the real parser does. Knows aiohttp's connections and
payloads; `aiohttp_served` feeds a taped answer to the same parser.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

from playhead.hooks.guest import NotAsExpected, Patches, need
from playhead.hooks.http.aiohttp_served import AnswerFeed, Server
from playhead.hooks.http.exchange import (
    STREAMED,
    Exchange,
    HttpAdapter,
    Request,
    call_of,
    recording_deck,
)
from playhead.hooks.http.listener import Listener
from playhead.hooks.websocket import aiohttp_websocket
from playhead.recording.crossing import Crossing

_KEY = "_playhead"


class Heard:
    """The exchange that a connection is busy with."""

    __slots__ = ("exchange", "listener", "player", "streamed", "timer")

    def __init__(self, exchange: Exchange, request: Any, *, streamed: bool) -> None:
        self.exchange = exchange
        self.listener = Listener(exchange, request.method)
        self.streamed = streamed
        self.player: AnswerFeed | None = None
        # The request's private timer: says whether its total timeout has passed.
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
    # aiohttp's server uses the same writer with protocols that take no attributes.
    heard: Heard | None = getattr(protocol, _KEY, None)
    return heard


class _Around:
    def __init__(self, module: ModuleType) -> None:
        self._plain = module.payload.BytesPayload
        self._server = Server(module)

    def connect(self, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def connect(connector: Any, req: Any, *args: Any, **kwargs: Any) -> Any:
            def live() -> Awaitable[Any]:
                return original(connector, req, *args, **kwargs)

            open_deck = recording_deck()
            if open_deck is None:
                return await live()
            made = open_deck.describe(
                lambda: _Attempt(req, self._body(req), live, self._server, connector),
                "an HTTP request",
                "http",
            )
            call = None if made is None else call_of(open_deck, made.request)
            if made is None or call is None:
                return await live()
            return await open_deck.perform_async(call, made)

        return connect

    def _body(self, req: Any) -> Any:
        body = req.body
        if not body:
            return None
        if isinstance(body, (bytes, bytearray)):
            return bytes(body)
        # A body that is compressed while it is sent differs from the one that the agent holds.
        is_plain = type(body) is self._plain or isinstance(body, self._plain)
        if is_plain and not getattr(req, "compress", None):
            return bytes(body._value)
        return STREAMED


class _Attempt(HttpAdapter):
    """One attempt of a request: it gets a connection to the server, or one to the tape."""

    def __init__(
        self,
        req: Any,
        body: Any,
        connect: Callable[[], Awaitable[Any]],
        server: Server,
        connector: Any,
    ) -> None:
        request = Request("aiohttp", str(req.method), str(req.url), list(req.headers.items()), body)
        # Before 3.12 a request's body could not be exchanged.
        super().__init__(request, rewrites=hasattr(req, "update_body"))
        self._req = req
        self._connect = connect
        self._server = server
        self._connector = connector

    async def live(self, crossing: Crossing) -> Any:
        self.begin(crossing)
        if crossing.instead is not None:
            await _rewrite(self._req, crossing.instead)
        return await self._connect()

    async def serve(self, crossing: Crossing) -> Any:
        exchange = self.begin(crossing)
        connection = await self._server.connect(self._connector, self._req, exchange)
        return self.observe(crossing, connection)

    def observe(self, crossing: Crossing, result: Any) -> Any:
        told = result.protocol.__dict__
        earlier = told.get(_KEY)
        if earlier is not None:
            earlier.exchange.left()
        streamed = self.request.body is STREAMED
        heard = told[_KEY] = Heard(self.exchange, self._req, streamed=streamed)
        heard.player = told.get("playhead_player")
        return result

    def failed(self, crossing: Crossing, error: BaseException) -> None:
        self.exchange.failed(error, stage="connect")


async def _rewrite(req: Any, body: bytes) -> None:
    kind = req.headers.get("Content-Type")
    await req.update_body(body)
    if kind is not None:
        req.headers["Content-Type"] = kind


def _around_data_received(original: Callable[..., None]) -> Callable[..., None]:
    def data_received(self: Any, data: bytes) -> None:
        heard = self.__dict__.get(_KEY)
        # Without a parser the handler keeps the bytes and passes them here again later.
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
            # The error that the client is about to raise in the agent.
            heard.exchange.failed(self.exception() or exc or ConnectionError("connection lost"))
        elif exc is None:
            heard.listener.eof()
        else:
            heard.listener.broke(exc)

    return connection_lost


def _around_let_go(original: Callable[..., None]) -> Callable[..., None]:
    """Around `Connection.close` and `release`: an answer that has not ended by then never ends."""

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
        heard = getattr(self._protocol, _KEY, None)  # a server's protocol takes no attributes
        if heard is not None and heard.streamed:
            heard.exchange.chunk(bytes(chunk), "sent")
            if heard.player is not None:
                heard.player.took(len(chunk))
        return original(self, chunk, *args, **kwargs)

    return write
