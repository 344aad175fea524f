"""Record and replay the requests of aiohttp's client.

A call begins in `BaseConnector.connect`, which is one attempt of one request: redirects and retries call it again.
The answer is observed in `ResponseHandler.data_received`, which gets every byte before aiohttp's parser does.
`aiohttp_served` feeds a taped answer to the same parser. Knows aiohttp's connections and payloads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

from playhead.hooks.guest import NotAsExpected, Patches, need
from playhead.hooks.http.aiohttp_served import AnswerFeed, Server
from playhead.hooks.http.exchange import (
    Exchange,
    HttpAdapter,
    Request,
    call_of,
    recording_deck,
)
from playhead.hooks.http.listener import Listener
from playhead.hooks.http.streamed_forms import STREAMED, described
from playhead.hooks.websocket import aiohttp_websocket
from playhead.recording import lanes
from playhead.recording.crossing import Crossing

_KEY = "_playhead"


class ObservedAnswer:
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
    # The exchange is attached to the connection's protocol. With __slots__ there would be no place for it.
    if not hasattr(proto.ResponseHandler, "__dict__"):
        raise NotAsExpected("ResponseHandler takes no attribute of ours")
    around = _Around(module)
    # `connect` covers TCP, Unix and named-pipe connectors, and also connections that come from the pool.
    # `ClientSession._request` would see a whole chain of redirects as one request.
    patches.replace(connector.BaseConnector, "connect", around.connect)
    patches.replace(connector.BaseConnector, "close", _around_close)
    patches.replace(connector.Connection, "close", _around_release)
    patches.replace(connector.Connection, "release", _around_release)
    # Bytes and not parsed chunks: the parser is in C, and decompresses. The tape keeps what the server sent.
    patches.replace(proto.ResponseHandler, "data_received", _around_data_received)
    patches.replace(proto.ResponseHandler, "connection_lost", _around_connection_lost)
    # For bodies that are made while they are sent. aiohttp's server calls `write` too: only a protocol with our
    # attribute (`_KEY`) is a client's.
    patches.replace(module.http_writer.StreamWriter, "write", _around_write)
    aiohttp_websocket.hook(module.client_ws, patches)


def _around_close(original: Callable[..., Any]) -> Callable[..., Any]:
    def close(self: Any, *args: Any, **options: Any) -> Any:
        # aiohttp starts a task that waits until its connections are closed. A replay has no connections.
        token = lanes.current.set(lanes.current.get().transport())
        try:
            return original(self, *args, **options)
        finally:
            lanes.reset(lanes.current, token)

    return close


def answer_on(protocol: Any) -> ObservedAnswer | None:
    """The exchange that this connection's protocol is busy with."""
    # aiohttp's server uses the same writer with protocols that take no attributes.
    observed: ObservedAnswer | None = getattr(protocol, _KEY, None)
    return observed


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
        return described(body) or STREAMED


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
        attributes = result.protocol.__dict__
        # An exchange that is still open on a reused connection was abandoned by its agent.
        earlier = attributes.get(_KEY)
        if earlier is not None:
            earlier.exchange.left()
        streamed = self.request.is_streamed
        observed = attributes[_KEY] = ObservedAnswer(self.exchange, self._req, streamed=streamed)
        observed.player = attributes.get("playhead_player")
        return result

    def failed(self, crossing: Crossing, error: BaseException) -> None:
        self.exchange.failed(error, stage="connect")


async def _rewrite(req: Any, body: bytes) -> None:
    # `update_body` sets the content type of bytes; the agent's own stays.
    kind = req.headers.get("Content-Type")
    await req.update_body(body)
    if kind is not None:
        req.headers["Content-Type"] = kind


def _around_data_received(original: Callable[..., None]) -> Callable[..., None]:
    def data_received(self: Any, data: bytes) -> None:
        observed = self.__dict__.get(_KEY)
        # Without a parser the handler keeps the bytes and passes them here again later.
        if observed is not None and data and self._parser is not None:
            observed.listener.feed(bytes(data))
        original(self, data)

    return data_received


def _around_connection_lost(original: Callable[..., None]) -> Callable[..., None]:
    def connection_lost(self: Any, exc: BaseException | None) -> None:
        observed = self.__dict__.pop(_KEY, None)
        # First aiohttp's own handling: it sets the exception that the client is about to raise.
        original(self, exc)
        if observed is None or observed.exchange.ended:
            return
        if observed.exchange.status is None:
            # The error that the client is about to raise in the agent.
            observed.exchange.failed(self.exception() or exc or ConnectionError("connection lost"))
        elif exc is None:
            observed.listener.eof()
        else:
            observed.listener.broke(exc)

    return connection_lost


def _around_release(original: Callable[..., None]) -> Callable[..., None]:
    """Around `Connection.close` and `release`: an answer that has not ended by then never ends."""

    def release(self: Any) -> None:
        observed = getattr(self._protocol, _KEY, None)
        if observed is not None and not observed.exchange.ended:
            error = self._protocol.exception()
            # The total timeout cancels the task: the connection is closed without an error of its own, and
            # only the private flag of the request's timer tells a timeout from a cancelled task.
            if error is None and getattr(observed.timer, "_cancelled", False):
                error = asyncio.TimeoutError()
            if error is not None:
                observed.exchange.failed(error)
            else:
                observed.exchange.left()
        original(self)

    return release


def _around_write(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    def write(self: Any, chunk: Any, *args: Any, **kwargs: Any) -> Awaitable[None]:
        observed = getattr(self._protocol, _KEY, None)  # a server's protocol takes no attributes
        if observed is not None and observed.streamed:
            observed.exchange.chunk(bytes(chunk), "sent")
            if observed.player is not None:
                observed.player.took(len(chunk))
        return original(self, chunk, *args, **kwargs)

    return write
