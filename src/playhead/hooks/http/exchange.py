"""Turn an HTTP request of any client into a call, and report its answer.

Knows which parts of a request are compared, how an LLM call is recognised and how an exchange ends; does not know httpx
or sockets. `HttpAdapter` is the base of every HTTP client's adapter. Errors in here never reach a program that
is being recorded.
"""

from __future__ import annotations

import json
import re
import urllib.parse as addresses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.encoding.values import safe_str
from playhead.hooks.http.streamed_forms import STREAMED, StreamedBody, shown_body
from playhead.host import own_listeners
from playhead.host.later import Later
from playhead.recording import calls, deck
from playhead.recording.adapter import Adapter
from playhead.recording.lanes import inside
from playhead.redact import Redactor
from playhead.redact.encoded_bodies import cleaned_body

if TYPE_CHECKING:
    from playhead.llm import http_headers, providers
    from playhead.recording.calls import Call, Taped
    from playhead.recording.deck import Crossing, Deck
else:
    # Many programs load an HTTP client and few send a request.
    providers = Later("playhead.llm.providers")
    http_headers = Later("playhead.llm.http_headers")

Pair = tuple[str, str]
AnyPair = tuple[Any, Any]

# The headers that a replay compares beside method, address and body. The others (user agents, SDK versions,
# idempotency keys, credentials) differ from run to run without changing the answer.
_COMPARED = frozenset(
    {
        *("accept", "content-encoding", "content-type", "prefer", "range"),
        *("anthropic-beta", "anthropic-version"),
        *("openai-beta", "openai-organization", "openai-project"),
        "sec-websocket-protocol",
    }
)
_MODEL = re.compile(rb'"model"\s*:\s*"([^"\\]{1,200})"')
_MOST_CLEANED = 2_000
_MOST_OUTLINES = 500
_SHORT = 32 * 1024
_LENGTH = len("content-length")
# OpenAI's SDKs, and all clients of their protocol, close the stream when they read this, one read before its
# end. Such a stream is whole.
_LAST_LINE = re.compile(rb"data: ?\[DONE\]\s*\Z")


class Exchange:
    """Reports one answer to the crossing. Ends once; later ends are ignored."""

    __slots__ = ("_deck", "_last", "crossing", "ended", "instead", "status", "taped")

    def __init__(self, crossing: Crossing) -> None:
        self._deck = crossing.deck
        self.crossing = crossing
        self.taped: Taped | None = crossing.taped
        # The body that the client has to send in place of its own.
        self.instead: bytes | None = crossing.instead
        self.status: int | None = None
        self.ended = False
        self._last = b""

    @property
    def name(self) -> str:
        return self.crossing.call.name

    @property
    def is_llm(self) -> bool:
        return self.crossing.call.boundary == "llm"

    def head(self, status: int, reason: str, version: str, headers: Iterable[AnyPair]) -> None:
        """Report that the answer has begun."""
        self.status = status
        if self.taped is not None and self.taped.quiet:
            return
        try:
            kept = cleaned(self._deck.recorder.redactor, headers)
            head = {"status": status, "reason": reason, "http_version": version, "headers": kept}
            self.crossing.head(head, clean=True, short=_is_short(kept))
        except Exception as error:  # noqa: BLE001 - recording fails open
            self._lost(error)

    def whole(
        self, status: int, reason: str, version: str, headers: Iterable[AnyPair], body: bytes
    ) -> None:
        """Report an answer that has arrived complete in one piece."""
        if self.ended:
            return
        self.status = status
        self.ended = True
        try:
            kept = cleaned(self._deck.recorder.redactor, headers)
            head = {"status": status, "reason": reason, "http_version": version, "headers": kept}
            self.crossing.whole(head, body, {"value": None, "status": status})
        except Exception as error:  # noqa: BLE001 - recording fails open
            self._lost(error)

    def chunk(self, piece: bytes, stream: str = "body") -> None:
        self._last = piece
        try:
            self.crossing.chunk(piece, stream)
        except Exception as error:  # noqa: BLE001 - recording fails open
            self._lost(error)

    @property
    def is_silent(self) -> bool:
        """Whether this answer is not reported, because all of it is already on the tape that serves it."""
        taped = self.taped
        return taped is not None and taped.quiet and taped.dies is None

    def heard(self, answer: bytes) -> None:
        """Report an LLM's answer that is complete while its socket stays open, so that its tool calls are known."""
        try:
            if self.crossing.call.boundary == "llm" and self.crossing.seq is not None:
                head = {"status": 200, "headers": ()}
                self._deck.hear(self.crossing.seq, self.crossing.call, head, answer)
        except Exception as error:  # noqa: BLE001 - recording fails open
            self._lost(error)

    def returned(self, **facts: Any) -> None:
        """Report that the answer is complete."""
        self._end("returned", {"value": None, **facts} if facts else {"value": None})

    def failed(self, error: BaseException, **facts: Any) -> None:
        """Report that the exchange failed, before or after the answer began.

        An error that is not an `Exception` (a cancelled task, an interrupt) means that the agent stopped
        waiting.
        """
        if not isinstance(error, Exception):
            self._end("left", facts)
        else:
            self._end("raised" if self.status is None else "cut", {"error": error, **facts})

    def cut(self, **facts: Any) -> None:
        """Report that the server broke off the answer. The client itself raises the error in the agent."""
        self._end("cut", facts)

    def left(self, **facts: Any) -> None:
        """Report that the agent stopped reading. The answer counts as complete if its last line had arrived."""
        if _LAST_LINE.search(self._last):
            self.returned(**facts)
        else:
            self._end("left", facts)

    def _end(self, how: str, facts: dict[str, Any]) -> None:
        if self.ended:
            return
        self.ended = True
        try:
            self.crossing.end(how, {**facts, "status": self.status})
        except Exception as error:  # noqa: BLE001 - recording fails open
            self._lost(error)

    def _lost(self, error: Exception) -> None:
        why = f"{type(error).__name__}: {safe_str(error)}"
        self._deck.recorder.warn(f"part of an HTTP exchange could not be recorded ({why}).")


class Request(NamedTuple):
    """A request as its client holds it. `headers` are str, or latin-1 bytes; `body` is bytes, None, or a body that
    is sent in pieces: STREAMED or a `StreamedBody`.

    `at` (as JSON) is the code location of the call, if it is not in this process; `facts` are further members of
    the call's event.
    """

    library: str
    method: str
    url: str
    headers: Sequence[AnyPair]
    body: object
    at: str | None = None
    facts: Mapping[str, Any] | None = None

    @property
    def is_streamed(self) -> bool:
        return self.body is STREAMED or type(self.body) is StreamedBody


class HttpAdapter(Adapter):
    """One request of an HTTP client. Subclasses supply `live`, `serve` and `observe`.

    A subclass calls `begin` first in `live` and `serve`, and then reports to `exchange`.
    """

    streams = True
    exchange: Exchange

    def __init__(self, request: Request, *, rewrites: bool = True) -> None:
        """`rewrites` says whether this client can send another body in place of its own."""
        self.request = request
        body = request.body
        if rewrites and type(body) is bytes:
            self.body = body
        else:
            what = "a streamed body" if rewrites else f"a request of {request.library}"
            self.unchangeable = f"{what} cannot be changed"

    def begin(self, crossing: Crossing) -> Exchange:
        exchange = self.exchange = Exchange(crossing)
        return exchange

    def failed(self, crossing: Crossing, error: BaseException) -> None:
        self.exchange.failed(error)

    def with_body(self, body: bytes) -> Call:
        open_deck = deck.active()
        redactor = None if open_deck is None else open_deck.recorder.redactor
        return describe(self.request._replace(body=body), redactor)


def recording_deck() -> Deck | None:
    """Return the deck for a request; None if nothing records, or if an outer client reports the request."""
    open_deck = deck.active()
    if open_deck is None or (inside.get() and open_deck.is_inside("http", "llm")):
        return None
    return open_deck


def call_of(open_deck: Deck, request: Request) -> Call | None:
    """Return the call for a request; None: it stays inside the program, or it cannot be described."""
    if own_listeners.may_serve_itself and _stays_inside(request.url):
        return None
    try:
        return describe(request, open_deck.recorder.redactor)
    except Exception as error:  # noqa: BLE001  (raised again where it must be)
        open_deck.undescribed(error, "an HTTP request", "http")
        return None


def _stays_inside(url: str) -> bool:
    """Return whether a server of this program answers. Calls of a model that it serves, as in a test, are recorded."""
    return own_listeners.serves(url) and not providers.may_be_llm(url)


def with_length(headers: Iterable[Pair], body: bytes) -> list[Pair]:
    """Return the headers with the content length of this body."""
    return [
        (name, str(len(body)) if name.lower() == "content-length" else value)
        for name, value in headers
    ]


class _Outline(NamedTuple):
    """The parts of a call that requests with the same method, address and headers share."""

    url: str
    # The headers that a replay compares, and all others.
    compared: dict[str, str]
    others: list[AnyPair]
    place: str
    # Whether the address may be that of an LLM. The request's headers and body then decide it.
    may_be_llm: bool


# A cache: a client sends many requests whose heads are equal, except for the length of the body. The texts in here
# are not redacted; that happens for each call (see `cleaned`).
_outlines: dict[Any, _Outline] = {}


def _outlined(request: Request) -> _Outline:
    url = request.url
    compared: dict[str, str] = {}
    others: list[AnyPair] = []
    for pair in request.headers:
        name = _text(pair[0]).lower()
        if name not in _COMPARED:
            others.append(pair)
            if name == "upgrade" and _text(pair[1]).lower() == "websocket":
                url = f"ws{url.removeprefix('http')}" if url.startswith("http") else url
            continue
        value = _text(pair[1])
        compared[name] = f"{compared[name]}, {value}" if name in compared else value
    place = f"{request.method} {_place(url)}"
    may_be_llm = _api_of_socket(url) is not None or providers.may_be_llm(url)
    return _Outline(url, compared, others, place, may_be_llm)


def describe(request: Request, redactor: Redactor | None = None) -> Call:
    """Return the call for a request. A replay compares the parts in `request`; the rest is in `facts`."""
    library, method, url, headers, body, at, more = request
    key = (method, url, *headers)
    try:
        outline = _outlines.get(key)
        if outline is None:
            if len(_outlines) >= _MOST_OUTLINES:
                _outlines.clear()
            outline = _outlines[key] = _outlined(request)
    except TypeError:  # a header that is not made of texts
        outline = _outlined(request)
    url, compared, others, name, may_be_llm = outline
    coding = compared.get("content-encoding")
    if coding and redactor is not None and type(body) is bytes:
        body = cleaned_body(redactor, coding, body, http_headers.undo)
    compared_request = {"method": method, "url": url, "headers": compared, "body": shown_body(body)}
    facts: dict[str, Any] = {"library": library, "headers": cleaned(redactor, others)}
    facts.update(more or {})
    api, raw = None, body if type(body) is bytes else None
    if may_be_llm:
        api = providers.api_of(method, url, decoded(headers), raw) or _api_of_socket(url)
    call = calls.Call(boundary="http", name=name, request=compared_request, facts=facts, at=at)
    # The placeholder of a key looks like a key: a second search would find it in every call of a model.
    call.redacted = "headers"
    if api is None:
        facts.update(providers.export_facts(method, url))
        return call
    facts["api"] = api
    model = providers.model_in(url) or _model(raw) or _model_asked(url)
    if model is not None:
        facts["model"] = model
    call.boundary, call.name = "llm", api if model is None else f"{api} {model}"
    return call


def cleaned(redactor: Redactor | None, headers: Iterable[AnyPair]) -> list[list[str]]:
    """Return headers as the tape keeps them: redacted texts. The redactor clears the cache when it learns a secret."""
    if redactor is None:
        return [list(pair) for pair in decoded(headers)]
    known = redactor.known_headers
    kept = []
    for pair in headers:
        clean = known.get(pair)
        if clean is None:
            # As texts too: a cookie has attributes beside its value.
            clean = redactor.clean(redactor.clean_header(*decoded([pair])[0]))
            if len(known) >= _MOST_CLEANED:
                known.clear()  # mostly dates and ids; the useful entries soon return
            known[pair] = clean
        kept.append(clean)
    return kept


def _is_short(headers: list[list[str]]) -> bool:
    """Return whether the answer declares a small length: it arrives at once, and is not a stream."""
    for name, value in headers:
        if len(name) == _LENGTH and name.lower() == "content-length":
            return len(value) < 5 or (value.isdigit() and int(value) <= _SHORT)
    return False


def decoded(headers: Iterable[AnyPair]) -> list[Pair]:
    return [(_text(name), _text(value)) for name, value in headers]


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def encoded(headers: Iterable[Sequence[str]]) -> Iterator[tuple[bytes, bytes]]:
    """The inverse of `decoded`, for headers that come from a tape."""
    return ((pair[0].encode("latin-1"), pair[1].encode("latin-1")) for pair in headers)


def _place(url: str) -> str:
    """Return `api.example.com/v1/things` of an address, without scheme, credentials and query."""
    place = url.partition("://")[2].partition("?")[0].partition("#")[0]
    host, slash, path = place.partition("/")
    return f"{host.rpartition('@')[2]}{slash}{path}"


def _model(body: bytes | None) -> str | None:
    """Return the model that a JSON body names. Does not decode the body, which may be a whole conversation. Quotes
    inside JSON strings are escaped, so every match is a key. If several keys have different values (a tool may have
    a `model` argument), the body is decoded after all.
    """
    if body is None:
        return None
    found = set(_MODEL.findall(body))
    if len(found) == 1:
        return str(found.pop(), "utf-8", "replace")
    try:
        whole = json.loads(body) if found else None
    except ValueError:
        return None
    model = whole.get("model") if isinstance(whole, dict) else None
    return model if isinstance(model, str) else None


def _api_of_socket(url: str) -> str | None:
    """Recognise OpenAI's Realtime API, a WebSocket that carries the events of the Responses API."""
    if not url.startswith("ws"):
        return None
    path = addresses.urlsplit(url).path.rstrip("/")
    return "openai.responses" if path.endswith("/realtime") else None


def _model_asked(url: str) -> str | None:
    models = addresses.parse_qs(addresses.urlsplit(url).query).get("model")
    return models[0] if models else None
