"""The websockets library, asyncio and threads: one exchange from `connect` to close.

Knows what `connect` takes; what is said then is told by `websockets_messages`. A taped
conversation is given to the real client as a socket, by the public `sock` argument, so the rest
of it is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from playhead import events
from playhead.errors import Divergence
from playhead.hooks.guest import Patches, need, report
from playhead.hooks.http import served
from playhead.hooks.http.exchange import Exchange, Pair, begin
from playhead.hooks.websocket.websocket_pair import taped_socket
from playhead.hooks.websocket.websockets_messages import follow, hook_messages
from playhead.recording import deck

_KEY = "_playhead"
# Where to connect to, and how: not for a socket that is connected already.
_OF_THE_CONNECTION = ("ssl", "server_hostname", "proxy", "host", "port", "sock", "unix", "path")
_OF_THE_SOCKET = ("local_addr", "address", "timeout", "source_address", "all_errors", "family")


def hook(module: ModuleType, patches: Patches) -> None:
    """For `websockets.asyncio.client` and `websockets.sync.client`; others are holes when used."""
    name = module.__name__
    if name == "websockets.asyncio.client":
        need(module, "connect", "ClientConnection")
        patches.replace(module.connect, "__init__", _around_init)
        patches.replace(module.connect, "__await__", _around_await)
        hook_messages(module.ClientConnection.__mro__[1], patches, threads=False)
    elif name == "websockets.sync.client":
        need(module, "connect", "ClientConnection")
        if hasattr(module, "reconnect"):
            patches.replace(module.reconnect, "__init__", _around_init)
            patches.replace(module.reconnect, "connect", _around_method)
        else:
            patches.replace(module, "connect", _around_function)
        hook_messages(module.ClientConnection.__mro__[1], patches, threads=True)
    else:
        connect = getattr(module, "Connect", None) or module.connect
        patches.replace(connect, "__init__", _around_unfollowed(name))


def _around_unfollowed(library: str) -> Callable[[Any], Any]:
    """The library loads these clients by itself, so that they are there says nothing yet."""
    what = f"what is said over {library} is not followed"

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def connect(*args: Any, **kwargs: Any) -> Any:
            open_deck = deck.active()
            if open_deck is not None and open_deck.mode is not None:
                raise Divergence(
                    f"A WebSocket is about to be opened, and {what}: nothing goes out."
                )
            report(events.HOLE, {"boundary": "http", "what": library, "why": what})
            return original(*args, **kwargs)

        return connect

    return wrap


def _around_init(original: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, uri: str, **options: Any) -> None:
        original(self, uri, **options)
        self.__dict__[_KEY] = (uri, options)

    return init


def _around_await(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def connected(self: Any) -> Any:
        uri, options = self.__dict__.get(_KEY, (self.uri, {}))
        exchange = _begin(uri, options)
        if exchange is None:
            return await _Awaitable(original, self)
        try:
            if exchange.taped is not None:
                await served.must_have_begun_async(exchange.taped, exchange.name)
                inner = type(self)(_plain(uri), **_served(options, exchange))
                inner.process_exception = self.process_exception
                connection = await _Awaitable(original, inner)
                self.connection = connection
            else:
                with exchange.crossing:
                    connection = await _Awaitable(original, self)
        except BaseException as error:
            _refused(exchange, error)
            raise
        return _followed(connection, exchange)

    def __await__(self: Any) -> Any:  # noqa: N807 - stands where the class's own stood
        return connected(self).__await__()

    return __await__


class _Awaitable:
    """What `__await__` of the library gives, to be awaited in a coroutine of ours."""

    def __init__(self, original: Callable[[Any], Any], connect: Any) -> None:
        self._original = original
        self._connect = connect

    def __await__(self) -> Any:
        return self._original(self._connect)


def _around_method(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def connect(self: Any) -> Any:
        uri, options = self.__dict__.get(_KEY, (self.uri, {}))

        def on_tape(exchange: Exchange) -> Any:
            return original(type(self)(_plain(uri), **_served(options, exchange)))

        return _connected(uri, options, lambda: original(self), on_tape)

    return connect


def _around_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def connect(uri: str, **options: Any) -> Any:
        def on_tape(exchange: Exchange) -> Any:
            return original(_plain(uri), **_served(options, exchange))

        return _connected(uri, options, lambda: original(uri, **options), on_tape)

    return connect


def _connected(
    uri: str,
    options: Mapping[str, Any],
    live: Callable[[], Any],
    on_tape: Callable[[Exchange], Any],
) -> Any:
    exchange = _begin(uri, options)
    if exchange is None:
        return live()
    try:
        if exchange.taped is not None:
            served.must_have_begun(exchange.taped, exchange.name)
            connection = on_tape(exchange)
        else:
            with exchange.crossing:
                connection = live()
    except BaseException as error:
        _refused(exchange, error)
        raise
    return _followed(connection, exchange)


def _begin(uri: str, options: Mapping[str, Any]) -> Exchange | None:
    headers = _pairs(options.get("additional_headers"))
    if options.get("subprotocols"):
        headers.append(("Sec-WebSocket-Protocol", ", ".join(options["subprotocols"])))
    return begin(library="websockets", method="GET", url=uri, headers=headers)


def _pairs(headers: Any) -> list[Pair]:
    if headers is None:
        return []
    if hasattr(headers, "raw_items"):
        headers = headers.raw_items()
    elif isinstance(headers, Mapping):
        headers = headers.items()
    return [(str(name), str(value)) for name, value in headers]


def _plain(uri: str) -> str:
    return f"ws:{uri.partition(':')[2]}"  # nothing is encrypted on the way from the tape


def _served(options: Mapping[str, Any], exchange: Exchange) -> dict[str, Any]:
    assert exchange.taped is not None  # noqa: S101 - the caller has looked
    kept = {
        name: value
        for name, value in options.items()
        if name not in _OF_THE_CONNECTION
        and name not in _OF_THE_SOCKET
        and not name.startswith(("ssl_", "proxy_"))
    }
    return {**kept, "sock": taped_socket(exchange.taped)}


def _refused(exchange: Exchange, error: BaseException) -> None:
    """No conversation: the server said no, or there was none."""
    response = getattr(error, "response", None)
    if response is None or not hasattr(response, "status_code"):
        exchange.failed(error)
        return
    _head(exchange, response)
    exchange.chunk(bytes(response.body or b""))
    exchange.returned()


def _followed(connection: Any, exchange: Exchange) -> Any:
    if connection.response is not None:
        _head(exchange, connection.response)
    follow(connection, exchange)
    return connection


def _head(exchange: Exchange, response: Any) -> None:
    headers = _pairs(response.headers)
    exchange.head(response.status_code, str(response.reason_phrase or ""), "HTTP/1.1", headers)
