"""httpx and httpx2: a transport around the client's own, for one request at a time.

Below authentication, redirects and cookies, above any custom transport: so each attempt is an
exchange of its own, and HTTP/2, proxies and aiohttp underneath need no hook. Knows the two
libraries' transports and streams, which have the same names; not what is recorded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.http import served
from playhead.hooks.http.exchange import STREAMED, Exchange, begin, decoded, encoded, with_length
from playhead.hooks.websocket.httpx_websocket import (
    AsyncHeardStream,
    AsyncTapedStream,
    HeardStream,
    TapedStream,
)
from playhead.host.later import Later
from playhead.recording import deck, pacing

if TYPE_CHECKING:
    from playhead.hooks.http import httpx_served
    from playhead.recording.calls import Taped
else:
    httpx_served = Later("playhead.hooks.http.httpx_served")  # a recorded program never needs it

_NAMES = ("Client", "AsyncClient", "Request", "Response", "BaseTransport", "AsyncBaseTransport")
_STREAMS = ("SyncByteStream", "AsyncByteStream", "ByteStream")
_MOST_ADDRESSES = 1000
# Programs inside this process: nothing crosses a boundary, and what they answer is not the world's.
_IN_PROCESS = ("ASGITransport", "WSGITransport", "MockTransport")


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, *_NAMES, *_STREAMS, *_IN_PROCESS, "RemoteProtocolError", "ReadError")
    need(module, "ReadTimeout")
    library = _Library(module)
    patches.replace(module.Client, "_transport_for_url", library.around(library.transport))
    patches.replace(
        module.AsyncClient, "_transport_for_url", library.around(library.async_transport)
    )


class _Library:
    """The classes that stand between a client and its transport, made of the library's own."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.name = module.__name__
        self.in_process = tuple(getattr(module, name) for name in _IN_PROCESS)
        self._addresses: dict[Any, str] = {}
        self.request = module.Request
        self.response = module.Response
        self.whole = module.ByteStream
        self.broken = module.RemoteProtocolError
        self.reset = module.ReadError
        self.late = module.ReadTimeout
        self.heard = type("Heard", (_Heard, module.SyncByteStream), {})
        self.async_heard = type("AsyncHeard", (_AsyncHeard, module.AsyncByteStream), {})
        self.upload = type("Upload", (_Upload, module.SyncByteStream), {})
        self.async_upload = type("AsyncUpload", (_AsyncUpload, module.AsyncByteStream), {})
        self.transport = type("Transport", (_Transport, module.BaseTransport), {})
        self.async_transport = type(
            "AsyncTransport", (_AsyncTransport, module.AsyncBaseTransport), {}
        )

    @cached_property
    def at_once(self) -> httpx_served.Served:
        return httpx_served.Served(self.module)

    def around(self, transport: type) -> Callable[[Any], Any]:
        in_process = self.in_process

        def wrap(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
            def _transport_for_url(client: Any, url: Any) -> Any:
                inner = original(client, url)
                if (
                    deck.active() is None
                    or isinstance(inner, in_process)
                    # Starlette's test client brings a transport of its own: it calls the application.
                    or type(inner).__module__ == "starlette.testclient"
                ):
                    return inner
                return transport(self, inner)

            return _transport_for_url

        return wrap

    def begin(self, request: Any) -> Exchange | None:
        return begin(
            library=self.name,
            method=request.method,
            url=self.address_of(request.url),
            headers=request.headers.raw,
            body=request.__dict__.get("_content", STREAMED),
            rewrites=True,
        )

    def address_of(self, url: Any) -> str:
        """As text. Put together by the library anew each time, for as much as an event costs."""
        parts = getattr(url, "_uri_reference", None)
        try:
            known = self._addresses.get(parts)
        except TypeError:  # not what we think it is
            return str(url)
        if known is None:
            known = str(url)
            if type(parts).__name__ == "ParseResult" and len(self._addresses) < _MOST_ADDRESSES:
                self._addresses[parts] = known
        return known

    def rewritten(self, request: Any, exchange: Exchange) -> Any:
        """The request as it is to be sent: the program keeps the one that it made."""
        body = exchange.instead
        if body is None:
            return request
        headers = list(encoded(with_length(decoded(request.headers.raw), body)))
        return self.request(
            request.method,
            request.url,
            headers=headers,
            content=body,
            extensions=request.extensions,
        )

    def must_be_in_time(self, taped: Taped, request: Any) -> None:
        """An answer slower than the client waits for never comes."""
        if served.is_late(taped, request.extensions.get("timeout", {}).get("read")):
            raise self.late("timed out", request=request)

    def hear(self, exchange: Exchange, response: Any, stream: type) -> Any:
        """Tell of an answer's head, and listen to its body as the client takes it."""
        extensions = response.extensions
        version = extensions.get("http_version", b"HTTP/1.1").decode("latin-1")
        reason = extensions.get("reason_phrase", b"").decode("latin-1")
        exchange.head(response.status_code, reason, version, response.headers.raw)
        if response.status_code == 101 and "network_stream" in extensions:
            ear = AsyncHeardStream if stream is self.async_heard else HeardStream
            extensions["network_stream"] = ear(extensions["network_stream"], exchange)
        if isinstance(response.stream, self.whole) and "_content" in response.__dict__:
            # A custom transport's answer that was never a stream: nobody will iterate over it.
            for piece in response.stream:
                exchange.chunk(piece)
            exchange.returned()
        else:
            response.stream = stream(response.stream, exchange)
        return response

    def answer(self, taped: Taped, stream: Any, socket: type) -> Any:
        head = taped.head
        version = str(head.get("http_version") or "HTTP/1.1")
        extensions: dict[str, Any] = {"http_version": version.encode("latin-1")}
        if head.get("reason"):
            extensions["reason_phrase"] = str(head["reason"]).encode("latin-1")
        if head["status"] == 101:
            extensions["network_stream"] = socket(taped)
        headers = list(encoded(head.get("headers") or ()))
        return self.response(head["status"], headers=headers, stream=stream, extensions=extensions)


class _Transport:
    """Stands for the client's own transport during one request."""

    def __init__(self, library: _Library, inner: Any) -> None:
        self._library = library
        self._inner = inner

    def handle_request(self, request: Any) -> Any:
        library = self._library
        if deck.replays() and (answer := library.at_once.answer(request)) is not None:
            return answer
        exchange = library.begin(request)
        if exchange is None:
            return self._inner.handle_request(request)
        stream = request.stream
        uploading = "_content" not in request.__dict__
        if uploading:
            request.stream = library.upload(stream, exchange)
        try:
            with exchange.crossing:
                if exchange.taped is None and exchange.instead is None:
                    response = self._inner.handle_request(request)
                else:
                    response = self._answer(request, exchange)
        except BaseException as error:
            exchange.failed(error)
            raise
        finally:
            if uploading:
                request.stream = stream
        return library.hear(exchange, response, library.heard)

    def _answer(self, request: Any, exchange: Exchange) -> Any:
        taped = exchange.taped
        if taped is None:
            return self._inner.handle_request(self._library.rewritten(request, exchange))
        served.take(request.stream, taped)
        self._library.must_be_in_time(taped, request)
        served.must_have_begun(taped, exchange.name, self._library.reset)
        pieces = served.body(taped, exchange.name, self._library.broken)
        return self._library.answer(taped, pieces, TapedStream)

    def close(self) -> None:
        self._inner.close()


class _AsyncTransport:
    """The same for an asynchronous client."""

    def __init__(self, library: _Library, inner: Any) -> None:
        self._library = library
        self._inner = inner

    async def handle_async_request(self, request: Any) -> Any:
        library = self._library
        if deck.replays() and (answer := await library.at_once.answer_async(request)) is not None:
            return answer
        exchange = library.begin(request)
        if exchange is None:
            return await self._inner.handle_async_request(request)
        stream = request.stream
        uploading = "_content" not in request.__dict__
        if uploading:
            request.stream = library.async_upload(stream, exchange)
        try:
            with exchange.crossing:
                if exchange.taped is None and exchange.instead is None:
                    response = await self._inner.handle_async_request(request)
                else:
                    response = await self._answer(request, exchange)
        except BaseException as error:
            exchange.failed(error)
            raise
        finally:
            if uploading:
                request.stream = stream
        return library.hear(exchange, response, library.async_heard)

    async def _answer(self, request: Any, exchange: Exchange) -> Any:
        taped = exchange.taped
        if taped is None:
            sent = self._library.rewritten(request, exchange)
            return await self._inner.handle_async_request(sent)
        await served.take_async(request.stream, taped)
        self._library.must_be_in_time(taped, request)
        await served.must_have_begun_async(taped, exchange.name, self._library.reset)
        pieces = served.body_async(taped, exchange.name, self._library.broken)
        return self._library.answer(taped, pieces, AsyncTapedStream)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Stream:
    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange


class _Heard(_Stream):
    """The body of an answer, told to the exchange piece by piece as the client takes it."""

    def __iter__(self) -> Iterator[bytes]:
        exchange = self._exchange
        try:
            for piece in self._stream:
                exchange.chunk(piece)
                yield piece
        except BaseException as error:
            exchange.failed(error)
            raise
        exchange.returned()

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._exchange.left()


class _AsyncHeard(_Stream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._exchange
        try:
            async for piece in self._stream:
                exchange.chunk(piece)
                yield piece
        except BaseException as error:
            exchange.failed(error)
            raise
        exchange.returned()

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._exchange.left()
            await pacing.close_async()


class _Upload(_Stream):
    """A body that is made while it is sent, told to the exchange as it goes out."""

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._exchange.chunk(piece, "sent")
            yield piece

    def close(self) -> None:
        self._stream.close()


class _AsyncUpload(_Stream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._exchange.chunk(piece, "sent")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
