"""Announce the requests of urllib3's pools (and so of requests, botocore, …) before the pool connects.

`http_client` observes the connection itself. But a pool connects before it sends. So only the pool knows the request
when a connection fails, and only the pool knows the body before it is sent. The private `_make_request` is one
attempt: redirects and retries call it again. Knows pools; does not know sockets.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from http.client import HTTPConnection
from types import ModuleType
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.http.exchange import (
    AnyPair,
    HttpAdapter,
    Request,
    call_of,
    decoded,
    recording_deck,
    with_length,
)
from playhead.hooks.http.http_client import (
    Asking,
    address,
    announce,
    around_connect,
    body_of,
    fail_as_taped,
    fail_if_late,
    withdraw,
)
from playhead.recording.crossing import Crossing

# The parameters of `_make_request` after the connection, the method and the address.
_POSITIONAL = ("body", "headers", "retries", "timeout", "chunked")


def hook(module: ModuleType, patches: Patches) -> None:
    if is_future(module):
        return
    need(module, "HTTPConnectionPool", "HTTPConnection", "HTTPSConnection")
    # Private, but its first three parameters are the same in 1.26 and 2.x, and `urlopen`, which requests and
    # botocore call, always ends here. `urlopen` itself would see redirects and retries as one request.
    patches.replace(module.HTTPConnectionPool, "_make_request", _around_make_request)


def hook_connect(module: ModuleType, patches: Patches) -> None:
    """Hook `connect` in a replay: no connection is opened before its request is known to be live."""
    if is_future(module):
        return
    for connection in (module.HTTPConnection, module.HTTPSConnection):
        if hasattr(connection, "connect"):  # without ssl, the HTTPS class is a stub that has none
            patches.replace(connection, "connect", around_connect)


def is_future(module: ModuleType) -> bool:
    """Return whether this is urllib3-future, which niquests installs in the place of urllib3.

    It has its own implementation of HTTP/1 to HTTP/3 in the place of http.client. `stream.sockets` records the bytes of
    its connections.
    """
    return not issubclass(module.HTTPConnection, HTTPConnection)


class _Attempt(HttpAdapter):
    """One attempt of a pool to make a request. Served answers pass through the same code of urllib3 and
    http.client as live ones, with a taped answer in place of the socket.
    """

    def __init__(self, request: Request, conn: Any, make: Callable[[bytes | None], Any]) -> None:
        super().__init__(request)
        self._conn = conn
        self._make = make

    def live(self, crossing: Crossing) -> Any:
        self.begin(crossing)
        return self._made(crossing)

    def serve(self, crossing: Crossing) -> Any:
        # Before the pool touches a socket: a taped failure to connect, then a taped timeout.
        exchange = self.begin(crossing)
        fail_as_taped(exchange)
        fail_if_late(exchange, getattr(self._conn, "timeout", None))
        return self._made(crossing)

    def observe(self, crossing: Crossing, result: Any) -> Any:
        return result  # the connection's listener has reported it, or will

    def _made(self, crossing: Crossing) -> Any:
        streamed = self.request.is_streamed
        # The hook of http.client finds the announcement on the connection. A connection serves one request at
        # a time, so the attribute is free; it is withdrawn even if the attempt fails.
        announce(self._conn, Asking(self.exchange, pooled=True, streamed=streamed))
        try:
            return self._make(crossing.instead)
        finally:
            withdraw(self._conn)


def _around_make_request(original: Callable[..., Any]) -> Callable[..., Any]:
    def _make_request(
        pool: Any, conn: Any, method: str, url: str, *args: Any, **kwargs: Any
    ) -> Any:
        def make(instead: bytes | None) -> Any:
            if instead is None:
                return original(pool, conn, method, url, *args, **kwargs)
            changed, named = _rewritten(instead, args, kwargs)
            return original(pool, conn, method, url, *changed, **named)

        open_deck = recording_deck()
        if open_deck is None:
            return make(None)
        request = open_deck.describe(
            lambda: _request(pool, method, url, args, kwargs), "an HTTP request", "http"
        )
        call = None if request is None else call_of(open_deck, request)
        if request is None or call is None:
            return make(None)
        return open_deck.perform(call, _Attempt(request, conn, make))

    return _make_request


def _request(
    pool: Any, method: str, url: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Request:
    body = kwargs.get("body", args[0] if args else None)
    headers = kwargs.get("headers", args[1] if len(args) > 1 else None)
    sent = body_of(body.encode() if isinstance(body, str) else body)
    # With an HTTP proxy `url` is absolute, and the pool's host is the proxy's.
    absolute = "://" in url.partition("?")[0]
    target = url if absolute else address(pool.scheme, pool.host, pool.port, url)
    return Request("urllib3", method, target, _pairs(headers), sent)


def _rewritten(
    body: bytes, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with another body and its length."""
    headers = kwargs.get("headers", args[1] if len(args) > 1 else None)
    named = {**dict(zip(_POSITIONAL, args, strict=False)), **kwargs, "body": body}
    if headers is not None:
        named["headers"] = dict(with_length(decoded(_pairs(headers)), body))
    return args[len(_POSITIONAL) :], named


def _pairs(headers: Any) -> list[AnyPair]:
    if headers is None:
        return []
    # The private `_store` of requests' headers: `items` makes four Python calls per header.
    store = getattr(headers, "_store", None)
    if type(store) is OrderedDict and type(headers).__name__ == "CaseInsensitiveDict":
        return list(store.values())
    return list(headers.items())
