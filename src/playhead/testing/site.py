"""A small web site on loopback, for tests of HTTP clients. Knows plain HTTP; no model, no script.

Its routes do what recorders find hard: streams with gaps, events split between chunks, streams that never end or
end too early, compressed bodies, redirects, uploads, silence.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import itertools
import threading
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import get_args

from playhead.llm.llm_script import Ending, ReceivedRequest
from playhead.testing.scripted_llm.loopback import LoopbackServer
from playhead.testing.scripted_llm.server_http1 import ServedExchange, encode_json
from playhead.testing.scripted_llm.server_websocket import WebSocket, asks_for_websocket

Route = Callable[[ServedExchange], Awaitable[None]]

_SSE = [("content-type", "text/event-stream"), ("cache-control", "no-cache")]
_TEXT = [("content-type", "text/plain; charset=utf-8")]
_BINARY = [("content-type", "application/octet-stream")]


class HttpSite(LoopbackServer):
    """`with HttpSite() as site:` serves on `site.url`; `routes` adds paths or replaces them."""

    def __init__(
        self,
        routes: Mapping[str, Route] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        super().__init__(host=host, port=port)
        self._routes: dict[str, Route] = {**READY_ROUTES, **(routes or {})}
        self._requests: list[ReceivedRequest] = []
        self._arrived = threading.Lock()

    @property
    def requests(self) -> list[ReceivedRequest]:
        """All requests so far, in the order of arrival."""
        with self._arrived:
            return list(self._requests)

    async def handle(self, exchange: ServedExchange) -> None:
        with self._arrived:
            exchange.request = replace(exchange.request, number=len(self._requests) + 1)
            self._requests.append(exchange.request)
        path = exchange.request.path
        route = self._routes.get(path) or self._routes.get(path.rpartition("/")[0] + "/")
        if route is None:
            paths = ", ".join(sorted(self._routes))
            await exchange.answer_json(404, {"error": f"No route {path}. There are: {paths}"})
            return
        await route(exchange)


def _number(request: ReceivedRequest, name: str, default: int) -> int:
    return int(request.query.get(name, default))


async def _gap(request: ReceivedRequest) -> None:
    await asyncio.sleep(_number(request, "gap_ms", 0) / 1000)


def _event(number: int) -> bytes:
    return b'id: %d\nevent: tick\ndata: {"n": %d, "text": "na\xc3\xafve \xe2\x86\x92"}\n\n' % (
        number,
        number,
    )


async def echo(exchange: ServedExchange) -> None:
    """Return the request as JSON; a body that is not text is in base64."""
    request = exchange.request
    facts: dict[str, object] = {
        "method": request.method,
        "path": request.path,
        "query": dict(request.query),
        "headers": dict(request.headers),
    }
    try:
        facts["body"] = request.body.decode()
    except UnicodeDecodeError:
        facts["body_base64"] = base64.b64encode(request.body).decode()
    await exchange.answer_json(200, facts)


async def sse(exchange: ServedExchange) -> None:
    """`?n=9&gap_ms=5`: that many events. `&torn=1`: each in two chunks, split within a character."""
    request = exchange.request
    await exchange.open_stream(200, _SSE)
    for number in range(_number(request, "n", 9)):
        event = _event(number)
        middle = event.index(b"\xc3") + 1 if "torn" in request.query else len(event)
        for piece in filter(None, (event[:middle], event[middle:])):
            await exchange.send(piece)
            await _gap(request)
    await exchange.finish()


async def endless(exchange: ServedExchange) -> None:
    """Events until the client leaves."""
    await exchange.open_stream(200, _SSE)
    for number in itertools.count():
        await exchange.send(_event(number))
        await asyncio.sleep(_number(exchange.request, "gap_ms", 5) / 1000)


async def cut(exchange: ServedExchange) -> None:
    """`?after=3&how=close|reset|stall`: a stream that stops early; `&mid=1` within an event."""
    request = exchange.request
    after = _number(request, "after", 3)
    await exchange.open_stream(200, _SSE)
    for number in range(after):
        await exchange.send(_event(number))
        await _gap(request)
    if "mid" in request.query:
        await exchange.send_half(_event(after))
    await exchange.end(_ending(request))


async def short(exchange: ServedExchange) -> None:
    """`?n=100&sent=40`: a body shorter than the length that was promised."""
    request = exchange.request
    body = b"x" * _number(request, "n", 100)
    await exchange.answer(200, body, _TEXT, sent=_number(request, "sent", 40))
    await exchange.end(_ending(request))


def _ending(request: ReceivedRequest) -> Ending:
    wanted = request.query.get("how", "close")
    for known in get_args(Ending):
        if wanted == known:
            ending: Ending = known
            return ending
    raise ValueError(f"how={wanted} is not one of {', '.join(get_args(Ending))}")


async def gzipped(exchange: ServedExchange) -> None:
    """A compressed JSON body. `?n=9&gap_ms=5`: a compressed stream of events."""
    request = exchange.request
    encoding = ("content-encoding", "gzip")
    if "n" not in request.query:
        body = gzip.compress(encode_json({"text": "naïve → " * 40}), mtime=0)
        await exchange.answer(200, body, [("content-type", "application/json"), encoding])
        return
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    await exchange.open_stream(200, [*_SSE, encoding])
    for number in range(_number(request, "n", 9)):
        await exchange.send(packer.compress(_event(number)) + packer.flush(zlib.Z_SYNC_FLUSH))
        await _gap(request)
    await exchange.send(packer.flush())
    await exchange.finish()


async def some_bytes(exchange: ServedExchange) -> None:
    """`?n=1000000`: bytes that do not compress, the same each time. `&chunk=4096`: chunked."""
    request = exchange.request
    body = hashlib.shake_256(b"playhead").digest(_number(request, "n", 1024))
    size = _number(request, "chunk", 0)
    if not size:
        await exchange.answer(200, body, _BINARY)
        return
    await exchange.open_stream(200, _BINARY)
    for piece in _slices(body, size):
        await exchange.send(piece)
        await _gap(request)
    await exchange.finish()


def _slices(body: bytes, size: int) -> Iterator[bytes]:
    return (body[start : start + size] for start in range(0, len(body), size))


async def status(exchange: ServedExchange) -> None:
    """`/status/503`: that status, with `?retry_after=1` as its header."""
    code = int(exchange.request.path.rpartition("/")[2])
    wait = exchange.request.query.get("retry_after")
    headers = [("retry-after", wait)] if wait is not None else []
    await exchange.answer_json(code, {"status": code}, headers)


async def redirect(exchange: ServedExchange) -> None:
    """`?to=/echo&code=302&n=1`: to the place, over n hops."""
    request = exchange.request
    left = _number(request, "n", 1)
    code, to = _number(request, "code", 302), request.query.get("to", "/echo")
    place = to if left <= 1 else f"/redirect?to={to}&code={code}&n={left - 1}"
    await exchange.answer(code, b"", [("location", place)])


async def upload(exchange: ServedExchange) -> None:
    """Return the size and hash of the body, without the body."""
    request = exchange.request
    answer = {
        "length": len(request.body),
        "sha256": hashlib.sha256(request.body).hexdigest(),
        "content_type": request.headers.get("content-type"),
        "chunked": "transfer-encoding" in request.headers,
    }
    await exchange.answer_json(200, answer)


async def slow(exchange: ServedExchange) -> None:
    """`?ms=200`: an answer after this delay."""
    await asyncio.sleep(_number(exchange.request, "ms", 200) / 1000)
    await exchange.answer(200, b"late", _TEXT)


async def hold(exchange: ServedExchange) -> None:
    """No answer at all, until the client leaves."""
    await exchange.end("stall")


async def until_close(exchange: ServedExchange) -> None:
    """A body without length or chunks: it ends with the connection."""
    await exchange.open_stream(200, _TEXT, framed=False)
    for number in range(_number(exchange.request, "n", 3)):
        await exchange.send(b"line %d\n" % number)
        await _gap(exchange.request)


async def cookies(exchange: ServedExchange) -> None:
    """Two cookies, in two headers of one name."""
    given = [("set-cookie", "session=abc123; Path=/"), ("set-cookie", "theme=dark; Path=/")]
    await exchange.answer_json(200, {"cookie": exchange.request.headers.get("cookie")}, given)


async def websocket(exchange: ServedExchange) -> None:
    """A WebSocket that echoes all messages."""
    if not asks_for_websocket(exchange):
        await exchange.answer_json(426, {"error": "This is a WebSocket."})
        return
    socket = WebSocket(exchange)
    await socket.accept()
    while (message := await socket.receive()) is not None:
        await socket.send(message)


READY_ROUTES: Mapping[str, Route] = {
    "/echo": echo,
    "/sse": sse,
    "/endless": endless,
    "/cut": cut,
    "/short": short,
    "/gzip": gzipped,
    "/bytes": some_bytes,
    "/status/": status,
    "/redirect": redirect,
    "/upload": upload,
    "/slow": slow,
    "/hold": hold,
    "/until-close": until_close,
    "/cookies": cookies,
    "/ws": websocket,
}
