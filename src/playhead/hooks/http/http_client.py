"""Record and replay the requests of http.client: those of urllib.request and of every client built on it.

The hooks replace the methods of a connection that send and receive. So they also observe a connection that was opened
before they were installed, and each request of a kept-alive connection is a separate exchange.

A request of http.client takes several method calls (`putrequest`, `endheaders`, `send`, `getresponse`). It is performed
through the deck in `endheaders`, where its head is complete; its answer is observed, or served, where the
connection's response reads it. Knows http.client's connections; for urllib3, `urllib3_pool` announces the requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from playhead.hooks.guest import NotAsExpected, Patches, need
from playhead.hooks.http import served
from playhead.hooks.http.exchange import (
    Exchange,
    HttpAdapter,
    Pair,
    Request,
    call_of,
    recording_deck,
    with_length,
)
from playhead.hooks.http.http1 import ChunkReader
from playhead.hooks.http.http_sockets import TapedAnswer, Unconnected, listen
from playhead.hooks.http.listener import Listener
from playhead.hooks.http.streamed_forms import STREAMED, described
from playhead.host import own_listeners
from playhead.recording import deck
from playhead.recording.crossing import Crossing

_KEY = "_playhead"


class Asking:
    """A request that a connection is sending, until its answer begins."""

    __slots__ = ("busy", "exchange", "pooled", "upload")

    def __init__(self, exchange: Exchange, *, pooled: bool, streamed: bool) -> None:
        self.exchange = exchange
        # Whether a pool has announced the request. The pool then also reports how it fails.
        self.pooled = pooled
        # Whether the head is being sent. A connection may be opened meanwhile; its own traffic is not the body.
        self.busy = False
        self.upload: Upload | None = Upload(exchange) if streamed else None


class Upload:
    """A body that is made while it is sent."""

    __slots__ = ("_chunks", "_exchange", "begun")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._chunks: ChunkReader | None = None
        self.begun = False

    def frame(self, headers: Sequence[Pair]) -> None:
        if any(
            "chunked" in value.lower()
            for name, value in headers
            if name.lower() == "transfer-encoding"
        ):
            self._chunks = ChunkReader()

    def feed(self, data: bytes) -> None:
        try:
            self._exchange.chunk(self._chunks.read(data) if self._chunks else data, "sent")
        except ValueError:
            self._chunks = None  # not chunked as announced: report the rest unparsed


def hook(module: ModuleType, patches: Patches) -> None:
    connection = module.HTTPConnection
    need(connection, "_send_output", "response_class", "auto_open")
    # The request line and the headers are in the private `_buffer` until `endheaders` sends them. This is the only
    # place where the head of a request is complete and not sent yet.
    if "_buffer" not in vars(connection("localhost")):
        raise NotAsExpected("HTTPConnection keeps its head elsewhere than in _buffer")
    patches.replace(connection, "endheaders", _around_endheaders)
    patches.replace(connection, "send", _around_send)
    patches.replace(connection, "getresponse", _around_getresponse)
    patches.replace(connection, "close", _around_close)


def hook_connect(module: ModuleType, patches: Patches) -> None:
    """Hook `connect` in a replay: no connection is opened before its request is known to be live."""
    patches.replace(module.HTTPConnection, "connect", around_connect)
    if hasattr(module, "HTTPSConnection"):
        patches.replace(module.HTTPSConnection, "connect", around_connect)


def announce(connection: Any, asking: Asking) -> None:
    """Attach the exchange of the next request to its connection."""
    connection.__dict__[_KEY] = asking


def withdraw(connection: Any) -> None:
    connection.__dict__.pop(_KEY, None)


class _Sending(HttpAdapter):
    """One request of a connection that no pool announces. Sends its head, and its body if `endheaders` has it whole."""

    def __init__(self, connection: Any, body: Any, send: Callable[[Any], None]) -> None:
        headers = _headers(connection._buffer)
        # The request line: method, target, version.
        target = connection._buffer[0].decode("latin-1").split(" ")[1]
        if body is None and _announces_body(headers):
            body = STREAMED
        super().__init__(
            Request(
                "http.client", connection._method, _url(connection, target), headers, body_of(body)
            )
        )
        self._connection = connection
        self._body = None if body is STREAMED else body
        self._send = send

    def live(self, crossing: Crossing) -> None:
        self.begin(crossing)
        body = self._body
        if crossing.instead is not None:
            body, buffer = crossing.instead, self._connection._buffer
            buffer[1:] = _lines(with_length(_headers(buffer), body))
        self._sent(body)

    def serve(self, crossing: Crossing) -> None:
        self.begin(crossing)
        fail_as_taped(self.exchange, "request")
        self._sent(self._body)

    def observe(self, crossing: Crossing, result: None) -> None:
        """Do nothing: the answer is observed from `getresponse` on."""

    def failed(self, crossing: Crossing, error: BaseException) -> None:
        withdraw(self._connection)
        self.exchange.failed(error, stage="request")

    def _sent(self, body: Any) -> None:
        asking = Asking(self.exchange, pooled=False, streamed=self.request.is_streamed)
        announce(self._connection, asking)
        send_head(self._connection, asking, lambda: self._send(body))


def send_head(connection: Any, asking: Asking, send: Callable[[], None]) -> None:
    """Run the original `endheaders` for a request that has been announced."""
    if asking.upload is not None:
        asking.upload.frame(_headers(connection._buffer))
    asking.busy = True
    try:
        send()
    finally:
        asking.busy = False


def _around_endheaders(original: Callable[..., None]) -> Callable[..., None]:
    def endheaders(self: Any, message_body: Any = None, **options: Any) -> None:
        asking: Asking | None = self.__dict__.get(_KEY)
        if asking is not None:
            return send_head(self, asking, lambda: original(self, message_body, **options))
        open_deck = recording_deck()
        if open_deck is None:
            return original(self, message_body, **options)
        made = open_deck.describe(
            lambda: _Sending(self, message_body, lambda body: original(self, body, **options)),
            "an HTTP request",
            "http",
        )
        call = None if made is None else call_of(open_deck, made.request)
        if made is None or call is None:
            return original(self, message_body, **options)
        open_deck.perform(call, made)
        return None

    return endheaders


def _around_send(original: Callable[..., None]) -> Callable[..., None]:
    def send(self: Any, data: Any) -> None:
        asking: Asking | None = self.__dict__.get(_KEY)
        if asking is None:
            return original(self, data)
        upload = asking.upload
        if upload is not None and upload.begun:
            data = _teed(data, upload)
        elif upload is not None and asking.busy:
            upload.begun = True  # the first data is the head
        if asking.exchange.taped is not None:
            self.sock = self.sock or Unconnected()
            return _exhaust(data)
        if isinstance(self.sock, Unconnected):
            self.sock = None  # a live request: open the connection now
        if upload is None:
            return original(self, data)
        asking.upload = None  # opening the connection sends data that is not the body
        try:
            return original(self, data)
        finally:
            asking.upload = upload

    return send


def _around_getresponse(original: Callable[..., Any]) -> Callable[..., Any]:
    def getresponse(self: Any, *args: Any, **kwargs: Any) -> Any:
        # urllib3 1.26 first passes `buffering`, which Python 2 had, and calls again after the TypeError.
        asking = None if args or kwargs else self.__dict__.pop(_KEY, None)
        if asking is None:
            return original(self, *args, **kwargs)
        own = self.__dict__.get("response_class")
        self.__dict__["response_class"] = _answering(self.response_class, asking.exchange)
        try:
            if not asking.pooled:
                fail_as_taped(asking.exchange, "answer")
                fail_if_late(asking.exchange, getattr(self, "timeout", None))
            return original(self)
        except BaseException as error:
            if not asking.pooled:
                asking.exchange.failed(error, stage="answer")
            raise
        finally:
            if own is None:
                del self.__dict__["response_class"]
            else:
                self.__dict__["response_class"] = own

    return getresponse


def _around_close(original: Callable[..., None]) -> Callable[..., None]:
    def close(self: Any) -> None:
        asking: Asking | None = self.__dict__.get(_KEY)
        if asking is not None and not asking.pooled and not asking.busy:
            withdraw(self)
            asking.exchange.left()
        original(self)

    return close


def around_connect(original: Callable[..., None]) -> Callable[..., None]:
    """Keep a replay off the network. Clients connect before they send the request, and only the request decides
    whether the answer is live or taped.
    """

    def connect(self: Any) -> None:
        open_deck = deck.active()
        if open_deck is None or open_deck.is_inside("http", "llm"):
            return original(self)
        asking: Asking | None = self.__dict__.get(_KEY)
        if asking is None:
            if own_listeners.may_serve_itself and own_listeners.has((self.host, self.port)):
                return original(self)
        elif asking.exchange.taped is None:
            return original(self)
        self.sock = Unconnected()
        if hasattr(self, "is_verified"):  # urllib3 warns if it is false
            self.is_verified = getattr(self, "cert_reqs", None) not in {0, "CERT_NONE"}
        return None

    return connect


def body_of(body: Any) -> Any:
    """Return a request's body in the form that `exchange.Request` takes."""
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, (bytearray, memoryview)):
        return bytes(body)
    return described(body) or STREAMED


def _headers(buffer: Sequence[bytes]) -> list[Pair]:
    pairs = (line.decode("latin-1").partition(":") for line in buffer[1:])
    return [(name, value.strip()) for name, _, value in pairs]


def _lines(headers: Iterable[Pair]) -> list[bytes]:
    """The inverse of `_headers`."""
    return [f"{name}: {value}".encode("latin-1") for name, value in headers]


def _announces_body(headers: Sequence[Pair]) -> bool:
    by_name = {name.lower(): value for name, value in headers}
    return "transfer-encoding" in by_name or by_name.get("content-length", "0") != "0"


def _url(connection: Any, target: str) -> str:
    if "://" in target.partition("?")[0]:
        return target  # the request goes through a proxy
    tunnel = getattr(connection, "_tunnel_host", None)
    host = tunnel or connection.host
    port = getattr(connection, "_tunnel_port", None) if tunnel else connection.port
    scheme = "https" if connection.default_port == 443 else "http"
    return address(scheme, host, port, target)


def address(scheme: str, host: str, port: int | None, target: str) -> str:
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    usual = port is None or port == {"http": 80, "https": 443}.get(scheme)
    return f"{scheme}://{shown}{target}" if usual else f"{scheme}://{shown}:{port}{target}"


def fail_as_taped(exchange: Exchange, stage: str | None = None) -> None:
    """Raise the taped exception, if the call failed before an answer began and at this stage."""
    taped = exchange.taped
    if taped is not None and taped.facts.get("stage") in {None, stage}:
        served.must_have_begun(exchange)


def fail_if_late(exchange: Exchange, timeout: object) -> None:
    if exchange.taped is not None and served.is_late(exchange.taped, timeout):
        raise TimeoutError("timed out")


def _answering(response_class: Any, exchange: Exchange) -> Callable[..., Any]:
    """Replaces the connection's `response_class`: makes a response that is observed, or served."""

    def respond(sock: Any, *args: Any, **kwargs: Any) -> Any:
        if exchange.is_silent:
            return response_class(TapedAnswer(exchange, None), *args, **kwargs)
        listener = Listener(exchange, kwargs.get("method") or "GET")
        if exchange.taped is not None:
            return response_class(TapedAnswer(exchange, listener), *args, **kwargs)
        response = response_class(sock, *args, **kwargs)
        try:
            listen(response.fp, listener)
        except NotAsExpected as problem:
            exchange.left(why=str(problem))
        return response

    return respond


def _teed(data: Any, upload: Upload) -> Any:
    """Return the data to send, wrapped so that it is reported to the exchange as it is taken."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        upload.feed(bytes(data))
        return data
    if hasattr(data, "read"):
        return _TeedFile(data, upload)
    return _teed_pieces(data, upload)


def _teed_pieces(pieces: Iterable[bytes], upload: Upload) -> Iterator[bytes]:
    for piece in pieces:
        upload.feed(bytes(piece))
        yield piece


class _TeedFile:
    def __init__(self, file: Any, upload: Upload) -> None:
        self._file = file
        self._upload = upload

    def read(self, *size: int) -> Any:
        piece = self._file.read(*size)
        self._upload.feed(piece.encode("latin-1") if isinstance(piece, str) else bytes(piece))
        return piece


def _exhaust(data: Any) -> None:
    """Read the data that would be sent, so that the code that makes it runs as in the recorded run."""
    if hasattr(data, "read"):
        while data.read(65536):
            continue
    elif not isinstance(data, (bytes, bytearray, memoryview, str)):
        for _ in data:
            continue
