"""urllib3's pools (and so requests, botocore, …): say what is asked before anything is done.

`http_client` hears the connection itself. But a pool connects before it sends, so only here is
the request known when a connection fails, and only here is its body known before it goes out.
`_make_request` is one attempt: redirects and retries call it again. Knows pools; not sockets.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.http.exchange import STREAMED, AnyPair, Exchange, begin, decoded, with_length
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
from playhead.host.later import Later
from playhead.recording import deck

if TYPE_CHECKING:
    from playhead.hooks.http import short_way
else:
    short_way = Later("playhead.hooks.http.short_way")  # a recorded program never needs it

# Of `_make_request`, after the connection, the method and the address.
_POSITIONAL = ("body", "headers", "retries", "timeout", "chunked")


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "HTTPConnectionPool", "HTTPConnection", "HTTPSConnection")
    patches.replace(module.HTTPConnectionPool, "_make_request", _around_make_request)
    for connection in (module.HTTPConnection, module.HTTPSConnection):
        if hasattr(connection, "connect"):  # without ssl the second is a stand-in that has none
            patches.replace(connection, "connect", around_connect)


def _around_make_request(original: Callable[..., Any]) -> Callable[..., Any]:
    def _make_request(
        pool: Any, conn: Any, method: str, url: str, *args: Any, **kwargs: Any
    ) -> Any:
        asking = _begin(pool, method, url, args, kwargs)
        if asking is None:
            return original(pool, conn, method, url, *args, **kwargs)
        exchange = asking.exchange
        if exchange.instead is not None:
            args, kwargs = _rewritten(exchange.instead, args, kwargs)
        announce(conn, asking)
        try:
            if exchange.taped is not None:
                fail_as_taped(exchange)
                fail_if_late(exchange, getattr(conn, "timeout", None))
                return original(pool, conn, method, url, *args, **kwargs)
            with exchange.crossing:
                return original(pool, conn, method, url, *args, **kwargs)
        except BaseException as error:
            exchange.failed(error)
            raise
        finally:
            withdraw(conn)

    return _make_request


def _begin(
    pool: Any, method: str, url: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Asking | None:
    body = kwargs.get("body", args[0] if args else None)
    headers = kwargs.get("headers", args[1] if len(args) > 1 else None)
    sent = body_of(body.encode() if isinstance(body, str) else body)
    pairs = _pairs(headers)
    absolute = "://" in url.partition("?")[0]
    target = url if absolute else address(pool.scheme, pool.host, pool.port, url)
    exchange: Exchange | None = None
    if deck.replays():
        parts = (target, tuple(pairs))
        exchange = short_way.begin("urllib3", method, parts, lambda: (target, decoded(pairs)), sent)
    if exchange is None:
        exchange = begin(
            library="urllib3",
            method=method,
            url=target,
            headers=pairs,
            body=sent,
            rewrites=True,
        )
    if exchange is None:
        return None
    return Asking(exchange, pooled=True, streamed=sent is STREAMED)


def _rewritten(
    body: bytes, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with another body, and its length."""
    headers = kwargs.get("headers", args[1] if len(args) > 1 else None)
    named = {**dict(zip(_POSITIONAL, args, strict=False)), **kwargs, "body": body}
    if headers is not None:
        named["headers"] = dict(with_length(decoded(_pairs(headers)), body))
    return args[len(_POSITIONAL) :], named


def _pairs(headers: Any) -> list[AnyPair]:
    if headers is None:
        return []
    # Of requests' headers: its own `items` calls back into Python four times a header.
    store = getattr(headers, "_store", None)
    if type(store) is OrderedDict and type(headers).__name__ == "CaseInsensitiveDict":
        return list(store.values())
    return list(headers.items())
