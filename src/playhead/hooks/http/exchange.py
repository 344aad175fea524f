"""One HTTP exchange on its way across the deck, whatever client makes it.

Knows what of a request is compared, what an LLM call looks like and how an exchange ends; not
httpx, not sockets. Whatever goes wrong in here while recording stays in here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead import events
from playhead.encoding.values import safe_str
from playhead.hooks.guest import report
from playhead.host.later import Later
from playhead.recording import deck
from playhead.recording.chunks import as_text
from playhead.redact import Redactor

if TYPE_CHECKING:
    import urllib.parse as addresses

    from playhead.hooks.http import known_requests
    from playhead.llm import recognise
    from playhead.recording import calls
    from playhead.recording.calls import Call, Taped
    from playhead.recording.deck import Crossing, Deck
else:
    # Many programs load an HTTP client and few ask it for something.
    addresses = Later("urllib.parse")
    calls = Later("playhead.recording.calls")
    known_requests = Later("playhead.hooks.http.known_requests")
    recognise = Later("playhead.llm.recognise")

Pair = tuple[str, str]
AnyPair = tuple[Any, Any]

# A body that is sent while it is being made: its pieces go on the tape as `sent` chunks.
STREAMED = object()

# What a replay compares beside method, address and body. All others (user agents, SDK versions,
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
_SHORT = 32 * 1024
_LENGTH = len("content-length")
# OpenAI's SDKs, and all who speak their protocol, hang up on hearing this, one read before the end.
_LAST_WORD = re.compile(rb"data: ?\[DONE\]\s*\Z")


class Exchange:
    """What a client tells of one request and its answer. Ends once; later ends are not heard."""

    __slots__ = ("_deck", "_last", "crossing", "ended", "instead", "status", "taped")

    def __init__(self, open_deck: Deck, crossing: Crossing) -> None:
        self._deck = open_deck
        self.crossing = crossing
        self.taped: Taped | None = crossing.taped
        # What the client is to send in place of the body that it has.
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
        """The answer has begun."""
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
        """The answer has come all at once, and it has ended."""
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

    def heard(self, answer: bytes) -> None:
        """An LLM's answer over a socket that stays open: which tools it asks for is known now."""
        try:
            if self.crossing.call.boundary == "llm" and self.crossing.seq is not None:
                head = {"status": 200, "headers": ()}
                self._deck.hear(self.crossing.seq, self.crossing.call, head, answer)
        except Exception as error:  # noqa: BLE001 - recording fails open
            self._lost(error)

    def returned(self, **facts: Any) -> None:
        """The answer is whole."""
        self._end("returned", {"value": None, **facts})

    def failed(self, error: BaseException, **facts: Any) -> None:
        """The exchange broke: before the answer began, or in the middle of it.

        What is no `Exception` (a cancelled task, an interrupt) is the agent itself leaving.
        """
        if not isinstance(error, Exception):
            self._end("left", facts)
        else:
            self._end("raised" if self.status is None else "cut", {"error": error, **facts})

    def cut(self, **facts: Any) -> None:
        """The other side broke off; the client itself will say so to the agent."""
        self._end("cut", facts)

    def left(self, **facts: Any) -> None:
        """The agent stopped listening: before the end, unless the last word had been said."""
        if self.ended:
            return
        if _LAST_WORD.search(self._last):
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


def begin(
    *,
    library: str,
    method: str,
    url: str,
    headers: Sequence[AnyPair],
    body: object = None,
    rewrites: bool = False,
    at: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Exchange | None:
    """Announce a request. None: nobody records, or a client around this one already does.

    `headers` are texts, or latin-1; `body` is bytes, None or STREAMED. A client that `rewrites` sends
    `exchange.instead`, if it is there. `at` (as JSON) says who asks, where that is no code of this
    process; `facts` are further members of the event. Raises a Divergence where a replay has no answer.
    """
    open_deck = deck.active()
    if open_deck is None or open_deck.is_inside("http", "llm"):
        return None
    recorder, key = open_deck.recorder, None
    try:
        if open_deck.mode is None and at is None and facts is None and recorder.level == "full":
            key = known_requests.key_of(library, method, url, headers, body)
            known = None if key is None else known_requests.spell(recorder, key, body)
            if known is not None:
                return Exchange(open_deck, open_deck.open_spelled(*known))
        request = Request(library, method, url, decoded(headers), body, at, facts)
        call = describe(request, recorder.redactor)
        if key is not None:
            known_requests.learn(recorder, key, call, body, partial(_asks, request))
    except Exception as error:
        if open_deck.mode is not None:  # a replay fails closed: nothing goes out unasked
            raise
        why = f"{type(error).__name__}: {safe_str(error)}"
        recorder.warn(f"an HTTP request could not be recorded ({why}).")
        return None
    rewriting = open_deck.rewriting
    if call.boundary != "llm" or rewriting is None:
        return Exchange(open_deck, open_deck.open(call))
    if rewrites and isinstance(body, bytes):
        sending = Sending(body, request, recorder.redactor)
        return Exchange(open_deck, open_deck.open(call, sending))
    exchange = Exchange(open_deck, open_deck.open(call))
    if exchange.taped is None and rewriting.rewrites:
        what = "a streamed body" if rewrites else f"a request of {library}"
        report(
            events.HOLE, {"boundary": "llm", "what": "rewrite", "why": f"{what} cannot be changed"}
        )
    return exchange


class Sending:
    """A body that can be exchanged before it is sent."""

    def __init__(self, body: bytes, request: Request, redactor: Redactor | None) -> None:
        self.body = body
        self._request = request
        self._redactor = redactor

    def with_body(self, body: bytes) -> Call:
        return describe(self._request._replace(body=body), self._redactor)


def with_length(headers: Iterable[Pair], body: bytes) -> list[Pair]:
    """The headers of a request whose body is now this one."""
    return [
        (name, str(len(body)) if name.lower() == "content-length" else value)
        for name, value in headers
    ]


class Request(NamedTuple):
    """A request as its client has it."""

    library: str
    method: str
    url: str
    headers: Sequence[Pair]
    body: object
    at: str | None = None
    facts: Mapping[str, Any] | None = None


def describe(request: Request, redactor: Redactor | None = None) -> Call:
    """The call that stands for a request: what is compared in `request`, the rest in facts."""
    library, method, url, headers, body, at, more = request
    compared: dict[str, str] = {}
    others: list[Pair] = []
    for pair in headers:
        name = pair[0].lower()
        if name in _COMPARED:
            compared[name] = f"{compared[name]}, {pair[1]}" if name in compared else pair[1]
            continue
        others.append(pair)
        if name == "upgrade" and pair[1].lower() == "websocket" and url.startswith("http"):
            url = f"ws{url[4:]}"
    asked = {"method": method, "url": url, "headers": compared, "body": _shown(body)}
    facts: dict[str, Any] = {"library": library, "headers": cleaned(redactor, others)}
    facts.update(more or {})
    raw = body if isinstance(body, bytes) else None
    api = recognise.api_of(method, url, headers, raw) or _api_of_socket(url)
    if api is None:
        name = f"{method} {_place(url)}"
        return calls.Call(boundary="http", name=name, request=asked, facts=facts, at=at)
    facts["api"] = api
    model = recognise.model_in(url) or _model(raw) or _model_asked(url)
    if model is not None:
        facts["model"] = model
    name = api if model is None else f"{api} {model}"
    return calls.Call(boundary="llm", name=name, request=asked, facts=facts, at=at)


def _asks(request: Request) -> known_requests.Ask | None:
    """What tells the LLM calls among requests that differ in their body alone."""
    if not recognise.may_be_llm(request.url):
        return None

    def ask(raw: bytes | None) -> tuple[str | None, str | None]:
        api = recognise.api_of(request.method, request.url, request.headers, raw)
        return api, None if api is None else _model(raw)

    return ask


def cleaned(redactor: Redactor | None, headers: Iterable[AnyPair]) -> list[list[str]]:
    """Headers as the tape keeps them. Remembered: most are the same in every request."""
    if redactor is None:
        return [list(pair) for pair in decoded(headers)]
    known = redactor.known_headers
    kept = []
    for pair in headers:
        clean = known.get(pair)
        if clean is None:
            clean = redactor.clean_header(*decoded([pair])[0])
            if len(known) >= _MOST_CLEANED:
                known.clear()  # dates and ids: what comes again is soon here again
            known[pair] = clean
        kept.append(clean)
    return kept


def _is_short(headers: list[list[str]]) -> bool:
    """Whether the answer is one that comes all at once, and no stream."""
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


def _shown(body: object) -> dict[str, Any] | None:
    if body is None or body == b"":
        return None
    return {"streamed": True} if body is STREAMED else dict(as_text(bytes(body)))  # type: ignore[call-overload]  # bytes by contract


def _place(url: str) -> str:
    """`api.example.com/v1/things` of an address: no scheme, no credentials, no query."""
    place = url.partition("://")[2].partition("?")[0].partition("#")[0]
    host, slash, path = place.partition("/")
    return f"{host.rpartition('@')[2]}{slash}{path}"


def _model(body: bytes | None) -> str | None:
    """The model that a JSON body names, without decoding it: bodies are whole conversations.

    Quotes inside JSON strings are escaped, so every hit is a key. Where keys disagree (a tool has
    a `model` argument too) the body is decoded after all.
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
    """OpenAI's Realtime API: a socket that speaks in the Responses API's events."""
    if not url.startswith("ws"):
        return None
    return (
        "openai.responses"
        if addresses.urlsplit(url).path.rstrip("/").endswith("/realtime")
        else None
    )


def _model_asked(url: str) -> str | None:
    models = addresses.parse_qs(addresses.urlsplit(url).query).get("model")
    return models[0] if models else None
