"""http.client, and with it urllib.request and every client built on its connections.

Hooked on the methods of a connection and not where it connects, so that one opened before the
hook is heard as well, and each request of a kept-alive connection is an exchange of its own.
Knows http.client's connections; urllib3 announces its requests itself (see `urllib3_pool`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

from playhead.hooks.guest import NotAsExpected, Patches, need
from playhead.hooks.http import served
from playhead.hooks.http.exchange import STREAMED, Exchange, Pair, begin, with_length
from playhead.hooks.http.http1 import ChunkReader
from playhead.hooks.http.http_sockets import TapedAnswer, Unconnected, listen
from playhead.hooks.http.listener import Listener
from playhead.recording import deck

_KEY = "_playhead"


class Asking:
    """A request on its way over a connection, until its answer begins."""

    __slots__ = ("busy", "exchange", "pooled", "upload")

    def __init__(self, exchange: Exchange, *, pooled: bool, streamed: bool) -> None:
        self.exchange = exchange
        # Announced by a pool around this connection, which also tells how it fails.
        self.pooled = pooled
        # While the head is sent, a connection may be made: its own traffic is not the body.
        self.busy = False
        self.upload: Upload | None = Upload(exchange) if streamed else None

    def inside(self) -> AbstractContextManager[object]:
        """What a live request does (look up a host, connect) is done for its exchange."""
        return nullcontext() if self.exchange.taped is not None else self.exchange.crossing


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
            self._chunks = None  # not framed as announced: from here on as it is


def hook(module: ModuleType, patches: Patches) -> None:
    connection = module.HTTPConnection
    need(connection, "_send_output", "response_class", "auto_open")
    if "_buffer" not in vars(connection("localhost")):
        raise NotAsExpected("HTTPConnection keeps its head elsewhere than in _buffer")
    patches.replace(connection, "endheaders", _around_endheaders)
    patches.replace(connection, "send", _around_send)
    patches.replace(connection, "getresponse", _around_getresponse)
    patches.replace(connection, "close", _around_close)
    patches.replace(connection, "connect", around_connect)
    if hasattr(module, "HTTPSConnection"):
        patches.replace(module.HTTPSConnection, "connect", around_connect)


def announce(connection: Any, asking: Asking) -> None:
    """Say what the next request of this connection is part of."""
    connection.__dict__[_KEY] = asking


def withdraw(connection: Any) -> None:
    connection.__dict__.pop(_KEY, None)


def _around_endheaders(original: Callable[..., None]) -> Callable[..., None]:
    def endheaders(self: Any, message_body: Any = None, **options: Any) -> None:
        if deck.active() is None:
            return original(self, message_body, **options)
        asking: Asking | None = self.__dict__.get(_KEY)
        if asking is None:
            asking = _begin(self, message_body)
            if asking is None:
                return original(self, message_body, **options)
            self.__dict__[_KEY] = asking
        if asking.upload is not None:
            asking.upload.frame(_headers(self._buffer))
        if asking.exchange.instead is not None and not asking.pooled:
            message_body = asking.exchange.instead
            self._buffer[1:] = _lines(with_length(_headers(self._buffer), message_body))
        asking.busy = True
        try:
            if asking.pooled:
                original(self, message_body, **options)
            else:
                fail_as_taped(asking.exchange, "request")
                with asking.inside():
                    original(self, message_body, **options)
        except BaseException as error:
            if not asking.pooled:
                withdraw(self)
                asking.exchange.failed(error, stage="request")
            raise
        finally:
            asking.busy = False

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
            upload.begun = True  # what goes out first is the head
        if asking.exchange.taped is not None:
            self.sock = self.sock or Unconnected()
            return _exhaust(data)
        if isinstance(self.sock, Unconnected):
            self.sock = None  # this one goes live: the connection is made after all
        if upload is None:
            return original(self, data)
        asking.upload = None  # making the connection sends things too: not the body
        try:
            return original(self, data)
        finally:
            asking.upload = upload

    return send


def _around_getresponse(original: Callable[..., Any]) -> Callable[..., Any]:
    def getresponse(self: Any, *args: Any, **kwargs: Any) -> Any:
        # urllib3 1.26 first asks as Python 2 had it, and takes the TypeError for an answer.
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
    """Keep a replay off the network: who will answer is known only when the request is."""

    def connect(self: Any) -> None:
        open_deck = deck.active()
        if open_deck is None or open_deck.mode is None or open_deck.is_inside("http", "llm"):
            return original(self)
        asking: Asking | None = self.__dict__.get(_KEY)
        if asking is not None and asking.exchange.taped is None:
            return original(self)
        self.sock = Unconnected()
        if hasattr(self, "is_verified"):  # urllib3 warns of connections that are not
            self.is_verified = getattr(self, "cert_reqs", None) not in {0, "CERT_NONE"}
        return None

    return connect


def _begin(connection: Any, body: Any) -> Asking | None:
    headers = _headers(connection._buffer)
    target = connection._buffer[0].decode("latin-1").split(" ")[1]
    if body is None and _announces_body(headers):
        body = STREAMED
    exchange = begin(
        library="http.client",
        method=connection._method,
        url=_url(connection, target),
        headers=headers,
        body=body_of(body),
        rewrites=True,
    )
    if exchange is None:
        return None
    return Asking(exchange, pooled=False, streamed=body_of(body) is STREAMED)


def body_of(body: Any) -> Any:
    """A request's body as `exchange.begin` takes it."""
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, (bytearray, memoryview)):
        return bytes(body)
    return STREAMED


def _headers(buffer: Sequence[bytes]) -> list[Pair]:
    pairs = (line.decode("latin-1").partition(":") for line in buffer[1:])
    return [(name, value.strip()) for name, _, value in pairs]


def _lines(headers: Iterable[Pair]) -> list[bytes]:
    """The inverse of `_headers`."""
    return [f"{name}: {value}".encode("latin-1") for name, value in headers]


def _announces_body(headers: Sequence[Pair]) -> bool:
    told = {name.lower(): value for name, value in headers}
    return "transfer-encoding" in told or told.get("content-length", "0") != "0"


def _url(connection: Any, target: str) -> str:
    if "://" in target.partition("?")[0]:
        return target  # through a proxy
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
    """Raise what the taped call raised, if it failed before an answer began and at this stage."""
    taped = exchange.taped
    if taped is not None and taped.facts.get("stage") in {None, stage}:
        served.must_have_begun(taped, exchange.name)


def fail_if_late(exchange: Exchange, timeout: object) -> None:
    if exchange.taped is not None and served.is_late(exchange.taped, timeout):
        raise TimeoutError("timed out")


def _answering(response_class: Any, exchange: Exchange) -> Callable[..., Any]:
    """Makes the response that http.client asks for, with an ear on it, or out of the tape."""

    def respond(sock: Any, *args: Any, **kwargs: Any) -> Any:
        taped = exchange.taped
        if taped is not None and taped.quiet and taped.dies is None:
            # Nobody is to be told: it is all on the tape that it comes from.
            return response_class(TapedAnswer(taped, exchange.name, None), *args, **kwargs)
        listener = Listener(exchange, kwargs.get("method") or "GET")
        if taped is not None:
            return response_class(TapedAnswer(taped, exchange.name, listener), *args, **kwargs)
        response = response_class(sock, *args, **kwargs)
        try:
            listen(response.fp, listener)
        except NotAsExpected as problem:
            exchange.left(why=str(problem))
        return response

    return respond


def _teed(data: Any, upload: Upload) -> Any:
    """What is sent, told to the exchange as it is taken."""
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
    """Take what would have been sent, so that what makes it runs as it did."""
    if hasattr(data, "read"):
        while data.read(65536):
            continue
    elif not isinstance(data, (bytes, bytearray, memoryview, str)):
        for _ in data:
            continue
