"""The short way to a taped answer, for what most requests of a replay are: whole, and on the tape to the
letter. Knows how a request is described; no client by name.

Requests of a program differ in their bodies and in little else. So what the rest of one comes to (its
name, what is compared, secrets out) is worked out once, and a body is looked up as it stands: one with
a secret in it is not on the tape like that. Whatever is not found here goes the long way, through
`exchange.begin`, which has the last word.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.hooks.http.exchange import AnyPair, Exchange, Request, describe
from playhead.llm import recognise
from playhead.recording import deck, lanes, where
from playhead.recording.calls import Piece, Taped
from playhead.replay.matching.fingerprint import plain_key
from playhead.replay.modes.taped_mode import ReplayMode

if TYPE_CHECKING:
    from playhead.replay.matching.alike import Alike
    from playhead.replay.matching.whole import Whole

# Mentions all that tells an LLM call from others: where this is none, no body makes it one.
_TELLING = b'{"messages" "model" "input" "contents" "anthropic_version"}'
_MOST_OUTLINES = 2_000

# The address and the headers of a request, spelled out: texts, or latin-1.
Spell = Callable[[], tuple[str, Sequence[tuple[Any, Any]]]]


class _Outline(NamedTuple):
    """What requests come to that differ in their bodies alone."""

    others: tuple[Hashable, ...]
    alike: Alike | None
    # Given where the body decides whether it is an LLM that is asked, and which.
    request: Request | None


def find(
    library: str, method: str, parts: tuple[Hashable, ...], spell: Spell, body: object
) -> Whole | None:
    """The answer to this request; its call is on the replay's tape then. None: go the long way.

    `parts` stand for address and headers: equal where those are.
    """
    open_deck = deck.active()
    mode = None if open_deck is None else open_deck.mode
    if type(mode) is not ReplayMode or not mode.is_short or deck.inside():
        return None
    if body is None:
        body = b""
    elif type(body) is not bytes:
        return None
    key = (library, method, *parts)
    try:
        outline = mode.outlines.get(key, _UNKNOWN)
    except TypeError:  # a header that is no text
        return None
    if outline is _UNKNOWN:
        url, headers = spell()
        told = [(_text(name), _text(value)) for name, value in headers]
        outline = _learn(mode, key, Request(library, method, url, told, body))
    if outline is None:
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    alike = outline.alike
    if outline.request is not None:
        call = describe(outline.request._replace(body=body))
        common = (call.boundary, mode.name_on_tape(call.name), outline.others)
        alike = mode.alike.get(common)
    if alike is None:
        return None
    return mode.exact(alike, text, lanes.current.get().name, where.fragment(_asker()))


class Answered(Exchange):
    """An exchange of which all is said already: for clients that are given bytes, and not a response."""

    __slots__ = ("_name",)

    def __init__(self, whole: Whole) -> None:  # what it is told goes nowhere: it has no crossing
        call, head, pieces, first_ns, end_ns = whole
        ended = {} if call.outcome is None else call.outcome.data
        self._name = call.name
        self.taped = Taped(
            how="returned",
            head=head,
            pieces=[Piece(stream="body", data=data, at_ns=at) for data, at in pieces],
            facts=ended,
            head_ns=first_ns,
            took_ns=end_ns,
            quiet=True,
        )
        self.instead = None
        self.status = None
        self.ended = False

    @property
    def name(self) -> str:
        return self._name

    def head(self, status: int, reason: str, version: str, headers: Iterable[AnyPair]) -> None:
        self.status = status

    def whole(
        self, status: int, reason: str, version: str, headers: Iterable[AnyPair], body: bytes
    ) -> None:
        self.status = status
        self.ended = True

    def chunk(self, piece: bytes, stream: str = "body") -> None:
        """It is on the tape that it comes from."""

    def left(self, **facts: Any) -> None:
        self.ended = True

    def _end(self, how: str, facts: dict[str, Any]) -> None:
        self.ended = True


def begin(
    library: str, method: str, parts: tuple[Hashable, ...], spell: Spell, body: object
) -> Answered | None:
    """As `find`, for `exchange.begin`."""
    whole = find(library, method, parts, spell, body)
    return None if whole is None else Answered(whole)


def _asker() -> FrameType:
    """`where.asker`, for a replay: there an audit hook hears of each code that is taken from a frame, so
    most frames are told by their module.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if type(module) is not str or module not in _libraries:
            file = frame.f_code.co_filename
            if not where.is_foreign(file):
                return frame
            if type(module) is str and file == frame.f_globals.get("__file__"):
                _libraries.add(module)
        frame = frame.f_back
    return where.asker(2)


_libraries: set[str] = set()


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _learn(mode: ReplayMode, key: Hashable, request: Request) -> _Outline | None:
    if len(mode.outlines) > _MOST_OUTLINES:
        mode.outlines.clear()
    outline = mode.outlines[key] = _outline(mode, request)
    return outline


def _outline(mode: ReplayMode, request: Request) -> _Outline | None:
    for name, _ in request.headers:
        if name.lower() in ("content-encoding", "upgrade"):
            return None  # what it comes to depends on more than its text
    call = describe(request)
    others = {name: item for name, item in call.request.items() if name != "body"}
    frozen = mode.frozen(others)
    if not isinstance(frozen, dict) or list(frozen) != list(others):
        return None
    may_be_llm = recognise.api_of(request.method, request.url, request.headers, _TELLING)
    keys = tuple((name, plain_key(frozen[name])) for name in sorted(frozen))
    return _Outline(
        others=keys,
        alike=mode.alike.get((call.boundary, mode.name_on_tape(call.name), keys)),
        request=request if may_be_llm is not None or call.boundary != "http" else None,
    )


_UNKNOWN = _Outline((), None, None)
