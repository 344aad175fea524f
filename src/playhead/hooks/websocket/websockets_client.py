"""Record and replay conversations of the websockets library (asyncio and threads): one exchange from connect to close.

A replay gives a taped conversation to the real client as a socket, through the public `sock` argument, so that the rest
of the client's code runs unchanged. Knows the arguments of `connect`; `websockets_messages` reports the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.http import served
from playhead.hooks.http.exchange import (
    Exchange,
    HttpAdapter,
    Pair,
    Request,
    call_of,
    recording_deck,
)
from playhead.hooks.websocket.conversation import taped_socket
from playhead.hooks.websocket.websockets_messages import follow, hook_messages
from playhead.recording import deck
from playhead.recording.crossing import HEAD, Crossing

_KEY = "_playhead"
# Options that say where to connect to, and how: a connected socket takes none of them.
_OF_THE_CONNECTION = ("ssl", "server_hostname", "proxy", "host", "port", "sock", "unix", "path")
_OF_THE_SOCKET = ("local_addr", "address", "timeout", "source_address", "all_errors", "family")


def hook(module: ModuleType, patches: Patches) -> None:
    """For `websockets.asyncio.client` and `websockets.sync.client`; others are holes when used."""
    name = module.__name__
    if name == "websockets.asyncio.client":
        need(module, "connect", "ClientConnection")
        # `connect` is a class whose instances are awaited, entered or iterated; all three end in `__await__`.
        # `__init__` is replaced to keep the arguments as the program gave them: afterwards they are spread
        # over attributes and closures.
        patches.replace(module.connect, "__init__", _around_init)
        patches.replace(module.connect, "__await__", _around_await)
        # `recv`, `send` and `close` are defined in the base class `Connection`. Server connections inherit
        # the hooks too, and are not reported, because `follow` marks only clients.
        hook_messages(module.ClientConnection.__mro__[1], patches, threads=False)
    elif name == "websockets.sync.client":
        need(module, "connect", "ClientConnection")
        # Newer versions: `connect` and every attempt of an iterated `reconnect` call the method
        # `reconnect.connect`. Older ones have the function alone.
        if hasattr(module, "reconnect"):
            patches.replace(module.reconnect, "__init__", _around_init)
            patches.replace(module.reconnect, "connect", _around_method)
        else:
            patches.replace(module, "connect", _around_function)
        hook_messages(module.ClientConnection.__mro__[1], patches, threads=True)
    else:
        # The legacy client has other frames and other method names. It is deprecated upstream, so it is
        # reported as a gap and not followed.
        connect = getattr(module, "Connect", None) or module.connect
        patches.replace(connect, "__init__", _around_unfollowed(name))


def _around_unfollowed(library: str) -> Callable[[Any], Any]:
    """Report a hole when a client is used whose messages no hook reports. Not when it is imported: the library imports
    it even if the program does not use it.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def connect(*args: Any, **kwargs: Any) -> Any:
            open_deck = deck.active()
            if open_deck is not None:
                open_deck.unfollowed("http", library, f"the messages of {library} are not followed")
            return original(*args, **kwargs)

        return connect

    return wrap


def _around_init(original: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, uri: str, **options: Any) -> None:
        original(self, uri, **options)
        # In `__dict__`: no setter or slot of the class can get in the way.
        self.__dict__[_KEY] = (uri, options)

    return init


class _Connecting(HttpAdapter):
    """One handshake of the client with threads; the conversation follows in `websockets_messages`."""

    def __init__(
        self,
        uri: str,
        options: Mapping[str, Any],
        connect: Callable[[], Any],
        connect_to: Callable[[Any], Any],
    ) -> None:
        """`connect` makes the real connection; `connect_to(sock)` makes one over a given socket."""
        headers = _pairs(options.get("additional_headers"))
        # The client adds this header while it connects. It is part of the request that is matched, because
        # servers choose the protocol by it.
        if options.get("subprotocols"):
            headers.append(("Sec-WebSocket-Protocol", ", ".join(options["subprotocols"])))
        super().__init__(Request("websockets", "GET", uri, headers, None))
        self._connect = connect
        self._connect_to = connect_to

    def live(self, crossing: Crossing) -> Any:
        self.begin(crossing)
        return self._connect()

    def serve(self, crossing: Crossing) -> Any:
        exchange = self.begin(crossing)
        taped = served.taped_of(exchange)
        if taped.head is None:
            # A connection that was refused then must fail now, before a socket exists.
            served.must_have_begun(exchange)
        try:
            # Inside of the call, as in a recording: threads of the connection are not counted as the program's.
            with crossing:
                connection = self._connect_to(taped_socket(taped))
        finally:
            crossing.reach(HEAD)  # in the recorded run the handshake was over then
        return self.observe(crossing, connection)

    def observe(self, crossing: Crossing, result: Any) -> Any:
        if result.response is not None:
            _head(self.exchange, result.response)
        follow(result, self.exchange)
        return result

    def failed(self, crossing: Crossing, error: BaseException) -> None:
        """Report that there is no conversation: the server refused the handshake, or there was no server."""
        response = getattr(error, "response", None)
        if response is None or not hasattr(response, "status_code"):
            self.exchange.failed(error)
            return
        _head(self.exchange, response)
        self.exchange.chunk(bytes(response.body or b""))
        self.exchange.returned()


class _AsyncConnecting(_Connecting):
    async def live(self, crossing: Crossing) -> Any:
        self.begin(crossing)
        return await self._connect()

    async def serve(self, crossing: Crossing) -> Any:
        exchange = self.begin(crossing)
        taped = served.taped_of(exchange)
        if taped.head is None:
            await served.must_have_begun_async(exchange)
        try:
            with crossing:  # as above: tasks of the connection (its keepalive) are not counted
                connection = await self._connect_to(taped_socket(taped))
        except Exception:
            await crossing.reach_async(HEAD)
            raise
        await crossing.reach_async(HEAD)
        return self.observe(crossing, connection)


def _around_await(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def connected(self: Any) -> Any:
        uri, options = self.__dict__.get(_KEY, (self.uri, {}))

        def connect() -> _Awaitable:
            return _Awaitable(original, self)

        async def connect_to(sock: Any) -> Any:
            # A second object with the same options: the program's own object may be awaited again to
            # reconnect, so it must not keep our socket.
            inner = type(self)(_plain(uri), **_without_network(options), sock=sock)
            # Decides which errors lead to a retry; the program may have replaced it on its own object.
            inner.process_exception = self.process_exception
            # `__aexit__` closes the connection that it finds in this attribute.
            self.connection = await _Awaitable(original, inner)
            return self.connection

        open_deck = recording_deck()
        adapter = _AsyncConnecting(uri, options, connect, connect_to)
        call = None if open_deck is None else call_of(open_deck, adapter.request)
        if open_deck is None or call is None:
            return await connect()
        return await open_deck.perform_async(call, adapter)

    def __await__(self: Any) -> Any:  # noqa: N807 - stands where the class's own stood
        return connected(self).__await__()

    return __await__


class _Awaitable:
    """Awaits the library's own `__await__` of an object in a coroutine of ours."""

    def __init__(self, original: Callable[[Any], Any], connect: Any) -> None:
        self._original = original
        self._connect = connect

    def __await__(self) -> Any:
        return self._original(self._connect)


def _around_method(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def connect(self: Any) -> Any:
        uri, options = self.__dict__.get(_KEY, (self.uri, {}))

        def connect_to(sock: Any) -> Any:
            return original(type(self)(_plain(uri), **_without_network(options), sock=sock))

        return _connected(uri, options, lambda: original(self), connect_to)

    return connect


def _around_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def connect(uri: str, **options: Any) -> Any:
        def connect_to(sock: Any) -> Any:
            return original(_plain(uri), **_without_network(options), sock=sock)

        return _connected(uri, options, lambda: original(uri, **options), connect_to)

    return connect


def _connected(
    uri: str,
    options: Mapping[str, Any],
    connect: Callable[[], Any],
    connect_to: Callable[[Any], Any],
) -> Any:
    open_deck = recording_deck()
    adapter = _Connecting(uri, options, connect, connect_to)
    call = None if open_deck is None else call_of(open_deck, adapter.request)
    if open_deck is None or call is None:
        return connect()
    return open_deck.perform(call, adapter)


def _pairs(headers: Any) -> list[Pair]:
    if headers is None:
        return []
    if hasattr(headers, "raw_items"):
        headers = headers.raw_items()
    elif isinstance(headers, Mapping):
        headers = headers.items()
    return [(str(name), str(value)) for name, value in headers]


def _plain(uri: str) -> str:
    return f"ws:{uri.partition(':')[2]}"  # a taped conversation is not encrypted


def _without_network(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a client accepts together with a connected socket."""
    return {
        name: value
        for name, value in options.items()
        if name not in _OF_THE_CONNECTION
        and name not in _OF_THE_SOCKET
        and not name.startswith(("ssl_", "proxy_"))
    }


def _head(exchange: Exchange, response: Any) -> None:
    headers = _pairs(response.headers)
    exchange.head(response.status_code, str(response.reason_phrase or ""), "HTTP/1.1", headers)
