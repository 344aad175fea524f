"""The one door between an agent and the world: every boundary's calls go through `Deck.open`.

Knows calls, outcomes and the mode that answers; not httpx, not subprocesses. A boundary asks
`crossing.taped` and otherwise does the thing itself, telling the crossing what it sees.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Protocol, TypeVar, runtime_checkable

from playhead import ambient, clock, events, lanes, pacing, where
from playhead.causes import LARGEST_HEARD, Asked
from playhead.chunks import ChunkBuffer
from playhead.events import Ref
from playhead.later import Later
from playhead.recorder import Recorder

if TYPE_CHECKING:
    from playhead.calls import Call as Call
    from playhead.calls import Piece as Piece
    from playhead.calls import Taped as Taped

T = TypeVar("T")


class Mode(Protocol):
    """Decides who answers a call. None: it is performed for real. Raises a Divergence otherwise."""

    def answer(self, call: Call, lane: str) -> Taped | None: ...


@runtime_checkable
class Rewriting(Protocol):
    """A mode that may change what is asked of the world: bytes in, bytes out."""

    @property
    def rewrites(self) -> bool: ...

    def rewrite(self, call: Call, body: bytes) -> bytes: ...


class Sending(Protocol):
    """The body of a request that its client can still exchange for another."""

    body: bytes

    def with_body(self, body: bytes) -> Call: ...


# The calls that the code running now is part of, innermost last.
_inside: ContextVar[tuple[Call, ...]] = ContextVar("playhead_inside", default=())

# Streams of whole messages, text or bytes, over a WebSocket: an empty one is a message too.
MESSAGES = frozenset({"sent", "received", "sent.bytes", "received.bytes"})


class Crossing:
    """One call on its way: written before it is performed, its stream as it comes, its outcome."""

    __slots__ = (
        *("_buffer", "_deck", "_ended", "_head", "_heard", "_started", "_tokens"),
        *("call", "instead", "seq", "taped"),
    )

    def __init__(self, deck: Deck, call: Call, taped: Taped | None, instead: bytes | None = None) -> None:
        self._deck = deck
        self.call = call
        self.taped = taped
        # The body to send in place of the one that the program made.
        self.instead = instead
        self._ended = False
        self._head: Any = None
        self._heard: list[bytes] | None = [] if call.boundary == "llm" else None
        self._buffer: ChunkBuffer | None = None
        self._tokens: list[tuple[Token[Any], Token[Any]]] = []
        self._started = clock.mono_ns()
        if taped is not None and taped.quiet:
            data = {"boundary": call.boundary, "name": call.name, "match": taped.match}
        else:
            data = {"boundary": call.boundary, "name": call.name, "request": call.request, **call.facts}
            if call.effect is not None:
                data["effect"] = call.effect
            if taped is not None and taped.match:
                data["match"] = dict(taped.match)
        at = call.at or where.fragment(where.asker(3))
        self.seq: Ref | None = deck.recorder.add(events.CALL, data, at, cause=deck.cause_of(call))

    def head(self, value: Any, *, clean: bool = False) -> None:
        """What comes before the body: status and headers. On the tape as soon as it is known.

        `clean`: plain JSON whose secrets are out already.
        """
        self._head = value
        if self.taped is not None and self.taped.quiet:
            return
        data = {"call": self.seq, "stream": "head", "value": value, "at_ns": [clock.mono_ns() - self._started]}
        self._deck.recorder.add(events.CHUNK, data, '""', parent=self.seq, clean=clean)

    def chunk(self, piece: bytes, stream: str = "body") -> None:
        """A piece of a stream, as it came."""
        if self.seq is None or (not piece and stream not in MESSAGES):
            return
        if self.taped is not None and self.taped.quiet:
            return
        if self._buffer is None:
            self._buffer = ChunkBuffer(self._deck.recorder, int(self.seq), self._started)
        self._buffer.add(stream, bytes(piece))
        if self._heard is not None and stream == "body":
            self._heard.append(piece)
            if self._buffer.total > LARGEST_HEARD:
                self._heard = None  # nobody will decode that much: an endless stream must not pile up

    def returned(self, value: Any = None, **facts: Any) -> None:
        self._end("returned", value=value, **facts)

    def raised(self, error: BaseException, **facts: Any) -> None:
        self._end("raised", error=error, **facts)

    def cut(self, error: BaseException | None = None, **facts: Any) -> None:
        """The other side broke off in the middle."""
        self._end("cut", error=error, **facts)

    def left(self, **facts: Any) -> None:
        """The agent stopped listening before the end."""
        self._end("left", **facts)

    def __enter__(self) -> Crossing:
        """While inside, further crossings are children of this one."""
        self._tokens.append((lanes.enclosing.set(self.seq), _inside.set((*_inside.get(), self.call))))
        return self

    def __exit__(self, *raised: object) -> None:
        enclosing, inside = self._tokens.pop()
        lanes.reset(lanes.enclosing, enclosing)
        lanes.reset(_inside, inside)

    def _end(self, how: str, **members: Any) -> None:
        if self._ended:
            return
        self._ended = True
        if self.taped is not None and self.taped.quiet:
            if self.taped.dies is not None:
                self.taped.dies()
            return
        self._deck.live.discard(self)
        data: dict[str, Any] = {"call": self.seq, "how": how, "took_ns": clock.mono_ns() - self._started}
        if self._buffer is not None:
            self._buffer.flush()
            data["chunks"] = self._buffer.count
            data["bytes"] = self._buffer.total
        clean = True
        for name, item in members.items():
            if item is not None or name == "value":
                data[name] = item
                clean = clean and (item is None or type(item) is int)
        if self.taped is not None and self.taped.dies is not None:
            self.taped.dies()
        self._deck.recorder.add(events.OUTCOME, data, '""', parent=self.seq, clean=clean)
        if self._heard and self.seq is not None:
            self._deck.hear(self.seq, self.call, self._head, b"".join(self._heard))


class Deck:
    """Holds the mode and the recorder of this process."""

    def __init__(self, recorder: Recorder, mode: Mode | None = None) -> None:
        self.recorder = recorder
        self.mode = mode
        # What happens for real in the middle of a replay.
        self.live: set[Crossing] = set()
        self._asked = Asked()

    def open(self, call: Call, sending: Sending | None = None) -> Crossing:
        """Announce a call. The caller serves `crossing.taped`, or performs the call and reports.

        A caller that gives `sending` sends `crossing.instead`, if there is such a thing.
        """
        ambient.flush()
        if self.mode is None:
            return Crossing(self, call, None)
        taped = self.mode.answer(call, lanes.current.get().name)
        instead: bytes | None = None
        if taped is None and sending is not None and isinstance(self.mode, Rewriting):
            body = self.mode.rewrite(call, sending.body)
            if body != sending.body:
                # On the tape is what was really asked.
                call, instead = sending.with_body(body), body
        crossing = Crossing(self, call, taped, instead)
        if crossing.taped is None:
            self.live.add(crossing)
        return crossing

    def cross(self, call: Call, live: Callable[[], T]) -> T:
        """A call that simply returns or raises."""
        crossing = self.open(call)
        if crossing.taped is not None:
            pacing.rest(crossing.taped.took_ns)
            return _serve(crossing)
        with crossing:
            try:
                value = live()
            except BaseException as error:
                crossing.raised(error)
                raise
        crossing.returned(value)
        return value

    async def cross_async(self, call: Call, live: Callable[[], Awaitable[T]]) -> T:
        crossing = self.open(call)
        if crossing.taped is not None:
            await pacing.rest_async(crossing.taped.took_ns)
            return _serve(crossing)
        with crossing:
            try:
                value = await live()
            except BaseException as error:
                crossing.raised(error)
                raise
        crossing.returned(value)
        return value

    def is_inside(self, *boundaries: str) -> bool:
        """Whether the code running now is already part of a crossing of one of these boundaries:
        a client on top of another client must not be recorded twice."""
        return any(one.boundary in boundaries for one in _inside.get())

    def cause_of(self, call: Call) -> Ref | None:
        if call.boundary in ("tool", "mcp"):
            # A tool that hands its call on to an MCP server of the same name was asked for once.
            inside = _inside.get()
            if inside and inside[-1].name == call.name and inside[-1].boundary in ("tool", "mcp"):
                return None
            request = call.request if isinstance(call.request, dict) else {}
            return self._asked.who_asked(call.name, request.get("arguments"))
        if call.boundary == "process" and not _inside.get():
            return self._asked.who_wrote(str(call.facts.get("command", "")))
        return None

    def hear(self, seq: Ref, call: Call, head: Any, body: bytes) -> None:
        head = head if isinstance(head, dict) else {}
        headers = {str(name).lower(): str(value) for name, value in head.get("headers") or ()}
        self._asked.hear(seq, str(call.facts.get("api", "")), int(head.get("status", 200)), headers, body)


def inside() -> tuple[Call, ...]:
    """The calls that the code running now is part of, innermost last."""
    return _inside.get()


def _serve(crossing: Crossing) -> Any:
    taped = crossing.taped
    if taped is None:
        raise AssertionError("only a taped crossing is served")
    if taped.how == "raised" and isinstance(taped.error, BaseException):
        crossing.raised(taped.error)
        raise taped.error
    crossing.returned(taped.value)
    return taped.value


_active: Deck | None = None


def active() -> Deck | None:
    """The deck of this process; None when nothing records or replays: hooks then pass through."""
    return _active


def activate(deck: Deck) -> None:
    global _active
    _active = deck


def deactivate(deck: Deck) -> None:
    global _active
    if _active is deck:
        _active = None


_calls = Later("playhead.calls")


def __getattr__(name: str) -> Any:
    """`Call`, `Piece` and `Taped` when they are first asked for: see `playhead.calls`."""
    if name not in ("Call", "Piece", "Taped"):
        raise AttributeError(f"module 'playhead.deck' has no attribute {name!r}")
    value = globals()[name] = getattr(_calls, name)
    return value
