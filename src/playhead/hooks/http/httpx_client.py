"""Record and replay the requests of httpx and httpx2: wrap the client's transport for each request.

The wrapper is below authentication, redirects and cookies, and above any custom transport. So each attempt is a
separate exchange, and HTTP/2, proxies and an aiohttp transport need no hook. Knows the transports and streams of the
two libraries, which have the same names; `exchange` does the reporting.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.http import served
from playhead.hooks.http.exchange import (
    Exchange,
    HttpAdapter,
    Request,
    call_of,
    decoded,
    encoded,
    recording_deck,
    with_length,
)
from playhead.hooks.http.httpx_streams import (
    AsyncObservedBody,
    AsyncServedBody,
    AsyncUploadBody,
    ObservedBody,
    ServedBody,
    UploadBody,
)
from playhead.hooks.http.streamed_forms import STREAMED, described
from playhead.hooks.websocket.httpx_websocket import (
    AsyncObservedStream,
    AsyncTapedStream,
    ObservedStream,
    TapedStream,
)
from playhead.recording import deck
from playhead.recording.crossing import WHOLE, Crossing

if TYPE_CHECKING:
    from playhead.recording.calls import Taped

_NAMES = ("Client", "AsyncClient", "Request", "Response", "BaseTransport", "AsyncBaseTransport")
_STREAMS = ("SyncByteStream", "AsyncByteStream", "ByteStream")
_MOST_ADDRESSES = 1000
# Transports to a program inside this process: nothing crosses a boundary.
_IN_PROCESS = ("ASGITransport", "WSGITransport", "MockTransport")


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, *_NAMES, *_STREAMS, *_IN_PROCESS, "RemoteProtocolError", "ReadError")
    need(module, "ReadTimeout")
    library = _Library(module)
    # A private method, and the narrowest place: both public ways in (`client.send` and the `_send_*` chain)
    # choose their transport with it for each request, after authentication and redirects. Replacing
    # `handle_request` of the default transport would miss custom transports and proxies. If httpx renames it,
    # `patches.replace` fails the self-check, and the tape gets a coverage gap.
    patches.replace(module.Client, "_transport_for_url", library.around(library.transport))
    patches.replace(
        module.AsyncClient, "_transport_for_url", library.around(library.async_transport)
    )


class _Library:
    """One of the two libraries, and our classes between its clients and their transports."""

    def __init__(self, module: ModuleType) -> None:
        self.name = module.__name__
        self.in_process = tuple(getattr(module, name) for name in _IN_PROCESS)
        self._addresses: dict[Any, str] = {}
        self.request = module.Request
        self.response = module.Response
        self.whole = module.ByteStream
        self.broken = module.RemoteProtocolError
        self.reset = module.ReadError
        self.late = module.ReadTimeout
        # httpx tests streams and transports with isinstance, so ours must be subclasses of its own classes.
        # They are made here because httpx must not be imported by a hook, and because httpx2 has its own set.
        self.observed = type("Observed", (ObservedBody, module.SyncByteStream), {})
        self.async_observed = type("AsyncObserved", (AsyncObservedBody, module.AsyncByteStream), {})
        self.served = type("Served", (ServedBody, module.SyncByteStream), {})
        self.async_served = type("AsyncServed", (AsyncServedBody, module.AsyncByteStream), {})
        self.upload = type("Upload", (UploadBody, module.SyncByteStream), {})
        self.async_upload = type("AsyncUpload", (AsyncUploadBody, module.AsyncByteStream), {})
        self.transport = type("Transport", (_Transport, module.BaseTransport), {})
        self.async_transport = type(
            "AsyncTransport", (_AsyncTransport, module.AsyncBaseTransport), {}
        )

    def around(self, transport: type) -> Callable[[Any], Any]:
        in_process = self.in_process

        def wrap(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
            def _transport_for_url(client: Any, url: Any) -> Any:
                # The client's own choice first: mounts and proxies stay as the program configured them.
                inner = original(client, url)
                if (
                    # Tested for each request: a client may be made before a recording starts and live on
                    # after it.
                    deck.active() is None
                    or isinstance(inner, in_process)
                    # Starlette's test client brings a transport of its own: it calls the application.
                    or type(inner).__module__ == "starlette.testclient"
                ):
                    return inner
                return transport(self, inner)

            return _transport_for_url

        return wrap

    def address_of(self, url: Any) -> str:
        """A URL as text. Cached by the parsed parts, which httpx keeps in `_uri_reference`: `str(url)` joins
        them each time, which costs as much as writing an event.
        """
        parts = getattr(url, "_uri_reference", None)
        try:
            known = self._addresses.get(parts)
        except TypeError:  # not a tuple of texts in this version
            return str(url)
        if known is None:
            known = str(url)
            if type(parts).__name__ == "ParseResult" and len(self._addresses) < _MOST_ADDRESSES:
                self._addresses[parts] = known
        return known

    def rewritten(self, request: Any, body: bytes) -> Any:
        """The request with another body. A copy: the program keeps the request that it made."""
        headers = list(encoded(with_length(decoded(request.headers.raw), body)))
        return self.request(
            request.method,
            request.url,
            headers=headers,
            content=body,
            extensions=request.extensions,
        )

    def must_be_in_time(self, taped: Taped, request: Any) -> None:
        """Raise the client's timeout for an answer that a fault made too slow."""
        if served.is_late(taped, request.extensions.get("timeout", {}).get("read")):
            raise self.late("timed out", request=request)

    def observe(self, exchange: Exchange, response: Any, stream: type) -> Any:
        """Report an answer's head, and have its body reported as the client takes it."""
        extensions = response.extensions
        version = extensions.get("http_version", b"HTTP/1.1").decode("latin-1")
        reason = extensions.get("reason_phrase", b"").decode("latin-1")
        exchange.head(response.status_code, reason, version, response.headers.raw)
        # After an upgrade the client never iterates over the body; it reads and writes this stream.
        if response.status_code == 101 and "network_stream" in extensions:
            # The extensions are shared with the response object, so replacing the stream here is enough.
            observed = AsyncObservedStream if stream is self.async_observed else ObservedStream
            extensions["network_stream"] = observed(extensions["network_stream"], exchange)
        if isinstance(response.stream, self.whole) and "_content" in response.__dict__:
            # The answer of a custom transport is not a stream: the client will not iterate over it.
            for piece in response.stream:
                exchange.chunk(piece)
            exchange.returned()
        else:
            response.stream = stream(response.stream, exchange)
        return response

    def answer(self, taped: Taped, stream: Any, socket: type) -> Any:
        """The library's response for a taped answer. `socket` is made where a WebSocket was opened."""
        head = taped.head
        version = head.get("http_version")
        extensions: dict[str, Any] = {
            "http_version": str(version).encode("latin-1") if version else b"HTTP/1.1"
        }
        if head.get("reason"):
            extensions["reason_phrase"] = str(head["reason"]).encode("latin-1")
        # WebSocket clients on top of httpx take their stream from this extension.
        if head["status"] == 101:
            extensions["network_stream"] = socket(taped)
        headers = list(encoded(head.get("headers") or ()))
        return self.response(head["status"], headers=headers, stream=stream, extensions=extensions)


class _Exchanging(HttpAdapter):
    """One request of a client, sync or async, through its own transport."""

    def __init__(self, library: _Library, inner: Any, request: Any) -> None:
        self._library = library
        self._inner = inner
        self._request = request
        # httpx keeps a body that it has whole in `_content`; without it, the body is made while it is sent.
        content = request.__dict__.get("_content", STREAMED)
        if content is STREAMED:
            content = described(request.stream) or STREAMED
        url = library.address_of(request.url)
        super().__init__(Request(library.name, request.method, url, request.headers.raw, content))

    def whole_body(self, crossing: Crossing) -> bytes | None:
        """Return the body of a taped answer that arrived in one piece; None if it is a stream, or if it broke off.

        Also None if the tape has the place of its end (`took_ns` is not a plain `int`): the library's own class for
        whole bodies cannot wait for an end.
        """
        taped = crossing.taped
        if taped is None or taped.how != "returned" or len(taped.pieces) != 1:
            return None
        if type(taped.took_ns) is not int:
            return None
        piece = taped.pieces[0]
        return piece.data if piece.stream == "body" and taped.head is not None else None


class _SyncExchanging(_Exchanging):
    def live(self, crossing: Crossing) -> Any:
        exchange, library, request = self.begin(crossing), self._library, self._request
        if crossing.instead is not None:
            return self._inner.handle_request(library.rewritten(request, crossing.instead))
        # Tests the type and does not call `is_streamed`, because every recorded request passes here.
        if type(self.request.body) is bytes:
            return self._inner.handle_request(request)
        stream = request.stream
        # The body is made while it is sent, so it is reported as it is taken. Restored afterwards, because a
        # redirect or a retry sends the same request object again.
        request.stream = library.upload(stream, exchange)
        try:
            return self._inner.handle_request(request)
        finally:
            request.stream = stream

    def observe(self, crossing: Crossing, result: Any) -> Any:
        return self._library.observe(self.exchange, result, self._library.observed)

    def serve(self, crossing: Crossing) -> Any:
        exchange, library = self.begin(crossing), self._library
        taped = served.taped_of(exchange)
        # A taped answer must not come before the program has made its body: generators have side effects, and
        # the recorded run had run them.
        if self.request.is_streamed:
            served.take(library.upload(self._request.stream, exchange), exchange)
        # After the body was taken: httpx's read timeout starts when the request has been sent.
        library.must_be_in_time(taped, self._request)
        # Most answers are one piece. The library's own class for whole bodies serves them without a generator
        # of ours.
        body = self.whole_body(crossing) if exchange.is_silent else None
        if body is not None:
            crossing.reach(WHOLE)
            return library.answer(taped, library.whole(body), TapedStream)
        served.must_have_begun(exchange, library.reset)
        pieces = library.served(served.body(exchange, library.broken))
        response = library.answer(taped, pieces, TapedStream)
        return (
            response
            if exchange.is_silent
            else library.observe(exchange, response, library.observed)
        )


class _AsyncExchanging(_Exchanging):
    async def live(self, crossing: Crossing) -> Any:
        exchange, library, request = self.begin(crossing), self._library, self._request
        if crossing.instead is not None:
            sent = library.rewritten(request, crossing.instead)
            return await self._inner.handle_async_request(sent)
        if not self.request.is_streamed:
            return await self._inner.handle_async_request(request)
        stream = request.stream
        request.stream = library.async_upload(stream, exchange)
        try:
            return await self._inner.handle_async_request(request)
        finally:
            request.stream = stream

    def observe(self, crossing: Crossing, result: Any) -> Any:
        return self._library.observe(self.exchange, result, self._library.async_observed)

    async def serve(self, crossing: Crossing) -> Any:
        exchange, library = self.begin(crossing), self._library
        taped = served.taped_of(exchange)
        if self.request.is_streamed:
            upload = library.async_upload(self._request.stream, exchange)
            await served.take_async(upload, exchange)
        library.must_be_in_time(taped, self._request)
        body = self.whole_body(crossing) if exchange.is_silent else None
        if body is not None:
            await crossing.reach_async(WHOLE)
            return library.answer(taped, library.whole(body), AsyncTapedStream)
        await served.must_have_begun_async(exchange, library.reset)
        pieces = library.async_served(served.body_async(exchange, library.broken), crossing)
        response = library.answer(taped, pieces, AsyncTapedStream)
        if exchange.is_silent:
            return response
        return library.observe(exchange, response, library.async_observed)


class _Transport:
    """Replaces the client's own transport during one request."""

    def __init__(self, library: _Library, inner: Any) -> None:
        self._library = library
        self._inner = inner

    def handle_request(self, request: Any) -> Any:
        open_deck = recording_deck()
        if open_deck is None:
            return self._inner.handle_request(request)
        adapter = _SyncExchanging(self._library, self._inner, request)
        call = call_of(open_deck, adapter.request)
        if call is None:
            return self._inner.handle_request(request)
        return open_deck.perform(call, adapter)

    def close(self) -> None:
        self._inner.close()


class _AsyncTransport:
    """The same for an asynchronous client."""

    def __init__(self, library: _Library, inner: Any) -> None:
        self._library = library
        self._inner = inner

    async def handle_async_request(self, request: Any) -> Any:
        open_deck = recording_deck()
        if open_deck is None:
            return await self._inner.handle_async_request(request)
        adapter = _AsyncExchanging(self._library, self._inner, request)
        call = call_of(open_deck, adapter.request)
        if call is None:
            return await self._inner.handle_async_request(request)
        return await open_deck.perform_async(call, adapter)

    async def aclose(self) -> None:
        await self._inner.aclose()
