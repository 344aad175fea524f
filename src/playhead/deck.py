"""The one door between an agent and the world: every boundary's calls go through `Deck.open`.

Knows calls, outcomes and the mode that answers; not httpx, not subprocesses. A boundary asks
`crossing.taped` and otherwise does the thing itself, telling the crossing what it sees.
"""

from __future__ import annotations

import os
from contextvars import ContextVar

from playhead import ambient, events, lanes, outcomes, pacing, where
from playhead.causes import LARGEST_HEARD, Asked
from playhead.chunks import LARGEST_TOGETHER, ChunkBuffer
from playhead.chunks import MESSAGES as MESSAGES  # noqa: PLC0414  (handed on)
from playhead.clock import mono_ns
from playhead.interrupts import is_interrupt
from playhead.later import Later
from playhead.lean import Protocol
from playhead.recorder import Recorder
from playhead.values import safe_str

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextvars import Token
    from typing import Any, TypeVar

    from playhead.calls import Call as Call  # noqa: PLC0414  (handed on: see __getattr__)
    from playhead.calls import Piece as Piece  # noqa: PLC0414
    from playhead.calls import Taped as Taped  # noqa: PLC0414
    from playhead.chunks import Held
    from playhead.events import Ref

    T = TypeVar("T")


class Mode(Protocol):
    """Decides who answers a call. None: it is performed for real. Raises a Divergence otherwise."""

    def answer(self, call: Call, lane: str) -> Taped | None: ...


class Rewriting(Protocol):
    """A mode that may change what is asked of the world: bytes in, bytes out."""

    @property
    def rewrites(self) -> bool: ...

    def rewrite(self, call: Call, body: bytes) -> bytes: ...


class Sending(Protocol):
    """The body of a request that its client can still exchange for another."""

    body: bytes

    def with_body(self, body: bytes) -> Call: ...


# What an LLM's answer may ask for.
_CAUSED = frozenset({"tool", "mcp", "process"})
# The calls that the code running now is part of, innermost last.
_inside: ContextVar[tuple[Call, ...]] = ContextVar("playhead_inside", default=())


class Crossing:
    """One call on its way: written before it is performed, its stream as it comes, its outcome."""

    __slots__ = (
        *("_buffer", "_deck", "_ended", "_head", "_heard", "_outside", "_segment", "_started"),
        *("call", "instead", "seq", "taped"),
    )

    def __init__(  # noqa: PLR0917  (by position: three names cost a call as much as finding its place)
        self,
        deck: Deck,
        call: Call,
        taped: Taped | None = None,
        instead: bytes | None = None,
        spelled: bytes | None = None,
        at: str | None = None,
        cause: Ref | None = None,
    ) -> None:
        self._deck = deck
        self.call = call
        self.taped = taped
        # The body to send in place of the one that the program made.
        self.instead = instead
        self._ended = False
        self._head: Any = None
        self._heard: list[bytes] | None = [] if call.boundary == "llm" else None
        self._buffer: ChunkBuffer | None = None
        # What was around before it was entered; it may be entered again before it is left.
        self._outside: tuple[Token[Any], Token[Any], Any] | None = None
        recorder = deck.recorder
        self._started = mono_ns()
        if spelled is None:
            at = call.at or where.asked(3)
            data, cause = _told(call, taped), deck.cause_of(call)
            self.seq: Ref | None = recorder.add(events.CALL, data, at, None, None, None, cause)
        else:
            at = at or where.asked(3)
            self.seq = recorder.add(events.CALL, spelled, at, None, None, None, cause, False, True)
        self._segment = recorder.segment

    @property
    def ref(self) -> Ref | None:
        """Its event; from a child that was forked since, by the name that holds there too."""
        if self.seq is None or self._deck.recorder.segment == self._segment:
            return self.seq
        self._buffer = None  # what waits in it is the parent's to write
        return f"{self._segment}:{self.seq}"

    def head(self, value: Any, *, clean: bool = False, short: bool = False) -> None:
        """What comes before the body: status and headers. On the tape as soon as it is known.

        `clean`: plain JSON whose secrets are out already. `short`: that of a small answer, all of which
        will be here in a moment: it may wait as long as pieces of a stream do.
        """
        self._head = value
        if self.taped is not None and self.taped.quiet:
            return
        recorder = self._deck.recorder
        ref = self.seq if recorder.segment is self._segment else self.ref
        if ref is None:
            return  # the call itself was lost, and that is counted
        data = {"stream": "head", "value": value, "at_ns": [mono_ns() - self._started]}
        if short and clean and self._buffer is None and recorder.level == "full":
            self._buffer = ChunkBuffer(recorder, ref, self._started, data)
            return
        recorder.add(events.CHUNK, {"call": ref, **data}, '""', parent=ref, clean=clean)

    def whole(self, head: Any, body: bytes, members: dict[str, Any]) -> None:
        """An answer that came all at once: a head that is clean, a body, and how it returned."""
        taped, recorder = self.taped, self._deck.recorder
        is_plain_case = taped is None and self._buffer is None and recorder.level == "full"
        if not is_plain_case or len(body) > LARGEST_TOGETHER:
            self.head(head, clean=True)
            self.chunk(body)
            self.end("returned", members)
            return
        self._head = head
        if self._heard is not None:
            self._heard.append(body)
        when = mono_ns() - self._started
        told = {"stream": "head", "value": head, "at_ns": [when]}
        self.end("returned", members, (told, "body", [(body, when)] if body else []))

    def chunk(self, piece: bytes, stream: str = "body") -> None:
        """A piece of a stream, as it came."""
        recorder = self._deck.recorder
        ref = self.seq if recorder.segment is self._segment else self.ref
        if ref is None or (not piece and stream not in MESSAGES):
            return
        if self.taped is not None and self.taped.quiet:
            return
        buffer = self._buffer
        if buffer is None:
            buffer = self._buffer = ChunkBuffer(recorder, ref, self._started)
        buffer.add(stream, bytes(piece))
        if self._heard is not None and stream == "body":
            self._heard.append(piece)
            if buffer.total > LARGEST_HEARD:
                # Nobody will decode that much: an endless stream must not pile up.
                self._heard = None

    def returned(self, value: Any = None, **facts: Any) -> None:
        if not facts and self._returned_only(value):
            return
        self.end("returned", {"value": value, **facts})

    def _returned_only(self, value: Any) -> bool:
        """Most calls just give something back: whether that is told, the short way."""
        deck, call = self._deck, self.seq
        recorder = deck.recorder
        is_live = self.taped is None and self._buffer is None and recorder.segment is self._segment
        if self._ended or not is_live or type(call) is not int:
            return False
        self._ended = True  # first: a signal handler may end it once more
        if not outcomes.add_value(recorder, call, mono_ns() - self._started, value):
            self._ended = False
            return False
        if deck.live:
            deck.live.discard(self)
        return True

    def raised(self, error: BaseException, **facts: Any) -> None:
        self.end("raised", {"error": error, **facts})

    def cut(self, error: BaseException | None = None, **facts: Any) -> None:
        """The other side broke off in the middle."""
        self.end("cut", {"error": error, **facts})

    def left(self, **facts: Any) -> None:
        """The agent stopped listening before the end."""
        self.end("left", facts)

    def __enter__(self) -> Crossing:  # noqa: PYI034  (typing.Self came with 3.11)
        """While inside, further crossings are children of this one."""
        ref = self.seq if self._deck.recorder.segment is self._segment else self.ref
        enclosed = lanes.enclosing.set(ref)
        self._outside = (enclosed, _inside.set((*_inside.get(), self.call)), self._outside)
        return self

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        if self._outside is None:
            raise AssertionError("only what was entered is left")
        enclosing, inside, self._outside = self._outside
        try:
            lanes.enclosing.reset(enclosing)
            _inside.reset(inside)
        except ValueError:
            return  # the host left the block in another context: there is nothing to undo

    def end(self, how: str, members: dict[str, Any], held: Held | None = None) -> None:
        """However it ended. `members` are further ones of its event: value, error, facts; `held` an
        answer that is not on the tape yet.
        """
        if self._ended:
            return
        self._ended = True
        taped, deck = self.taped, self._deck
        if taped is not None and taped.quiet:
            if taped.dies is not None:
                taped.dies()
            return
        if deck.live:
            deck.live.discard(self)
        recorder = deck.recorder
        ref = self.seq if recorder.segment is self._segment else self.ref
        if ref is None:
            return
        took, counts = mono_ns() - self._started, None
        if self._buffer is not None:
            held = self._buffer.finish()
            counts = (self._buffer.count, self._buffer.total)
        elif held is not None:
            counts = (len(held[2]), sum([len(piece) for piece, _ in held[2]]))
        if taped is not None and taped.dies is not None:
            taped.dies()
        outcomes.add(recorder, ref, how, took, members, counts, held)
        if self._heard:
            deck.hear(ref, self.call, self._head, b"".join(self._heard))


def _told(call: Call, taped: Taped | None) -> dict[str, Any]:
    """What the event of a call says, and of how its answer was found."""
    if taped is None:
        return call.told()
    if taped.quiet:
        return {"boundary": call.boundary, "name": call.name, "match": taped.match}
    return {**call.told(), "match": dict(taped.match)} if taped.match else call.told()


class Deck:
    """Holds the mode and the recorder of this process."""

    def __init__(self, recorder: Recorder, mode: Mode | None = None) -> None:
        self.recorder = recorder
        self.mode = mode
        self._rewriting: tuple[Mode | None, Rewriting | None] = (None, None)
        # What happens for real in the middle of a replay.
        self.live: set[Crossing] = set()
        # What models have asked for, and nobody has done yet.
        self.asked = Asked()
        # Another process that performs what models ask for in this one: is told what they answer.
        self.heard_too: Callable[[str, str, int, Mapping[str, str], bytes], None] | None = None

    @property
    def rewriting(self) -> Rewriting | None:
        """The mode, if it may change what is asked. Asked once a mode: to look a protocol up in an
        object takes as long as to write an event.
        """
        mode, rewriting = self._rewriting
        if mode is not self.mode:
            asked: Any = self.mode
            rewriting = asked if hasattr(asked, "rewrite") and hasattr(asked, "rewrites") else None
            self._rewriting = self.mode, rewriting
        return rewriting

    def open(self, call: Call, sending: Sending | None = None) -> Crossing:
        """Announce a call. The caller serves `crossing.taped`, or performs the call and reports.

        A caller that gives `sending` sends `crossing.instead`, if there is such a thing.
        """
        ambient.flush()
        self.recorder.renew_secrets()
        if self.mode is None:
            return Crossing(self, call, None)
        taped = self.mode.answer(call, lanes.current.get().name)
        instead: bytes | None = None
        if taped is None and sending is not None and self.rewriting is not None:
            body = self.rewriting.rewrite(call, sending.body)
            if body != sending.body:
                # On the tape is what was really asked.
                call, instead = sending.with_body(body), body
        crossing = Crossing(self, call, taped, instead)
        if crossing.taped is None:
            self.live.add(crossing)
            pacing.go_live(call.boundary)
        return crossing

    def open_spelled(
        self, call: Call, spelled: bytes, at: str | None = None, cause: Ref | None = None
    ) -> Crossing:
        """Announce a call that is performed for real, and whose event is spelled as JSON already."""
        ambient.flush()
        return Crossing(self, call, None, None, spelled, at, cause)

    def cross(self, call: Call, live: Callable[[], T]) -> T:
        """A call that simply returns or raises."""
        crossing = self.open(call)
        if crossing.taped is not None:
            pacing.rest(crossing.taped.took_ns)
            served: T = _serve(crossing)
            return served
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
            served: T = _serve(crossing)
            return served
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
        a client on top of another client must not be recorded twice.
        """
        inside = _inside.get()
        return bool(inside) and any(one.boundary in boundaries for one in inside)

    def cause_of(self, call: Call) -> Ref | None:
        """The LLM call whose answer asked for this one. Recording fails open: None if in doubt."""
        if call.boundary not in _CAUSED or not self.asked.anything:
            return None
        try:
            name = self._name_of_cause(call)
        except Exception as error:  # an answer of a stranger's, arguments of the host's
            if is_interrupt(error):
                raise
            self.recorder.warn(f"the cause of {call.name} cannot be told ({safe_str(error)}).")
            return None
        segment, _, seq = (name or "").rpartition(":")
        return int(seq) if segment == self.recorder.segment else name

    def _name_of_cause(self, call: Call) -> str | None:
        if call.boundary in ("tool", "mcp"):
            # A tool that hands its call on to an MCP server of the same name was asked for once.
            inside = _inside.get()
            if inside and inside[-1].name == call.name and inside[-1].boundary in ("tool", "mcp"):
                return None
            request = call.request if isinstance(call.request, dict) else {}
            return self.asked.who_asked(call.name, request.get("arguments"))
        if call.boundary == "process" and not _inside.get():
            return self.asked.who_wrote(str(call.facts.get("command", "")))
        return None

    def forked(self) -> None:
        self.asked.make_lock()

    def hear(self, seq: Ref, call: Call, head: Any, body: bytes) -> None:
        """An LLM has answered: what it asks for may be performed from now on."""
        head = head if isinstance(head, dict) else {}
        headers = {str(name).lower(): str(value) for name, value in head.get("headers") or ()}
        status = head.get("status", 200)
        # By the name that still holds in a child that is forked later.
        name = seq if isinstance(seq, str) else f"{self.recorder.segment}:{seq}"
        api = str(call.facts.get("api", ""))
        status = status if isinstance(status, int) else 200
        self.learn(name, api, status, headers, body)
        if self.heard_too is not None:
            self.heard_too(name, api, status, headers, body)

    def learn(
        self, name: str, api: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> None:
        """An LLM has answered, here or in another process of the run, where its call has that name."""
        self.asked.hear(name, api, status, headers, body)


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


def replays() -> bool:
    """Whether somebody else than the world may answer."""
    return _active is not None and _active.mode is not None


def activate(deck: Deck) -> None:
    global _active  # noqa: PLW0603  (one deck a process is what this module is about)
    _active = deck


def _forked() -> None:
    """A lock that another thread held at the fork would never be released here."""
    if _active is not None:
        _active.forked()


os.register_at_fork(after_in_child=_forked)


def deactivate(deck: Deck) -> None:
    global _active  # noqa: PLW0603  (one deck a process is what this module is about)
    if _active is deck:
        _active = None


_calls = Later("playhead.calls")


def __getattr__(name: str) -> Any:
    """`Call`, `Piece` and `Taped` when they are first asked for: see `playhead.calls`."""
    if name not in ("Call", "Piece", "Taped"):
        raise AttributeError(f"module 'playhead.deck' has no attribute {name!r}")
    value = globals()[name] = getattr(_calls, name)
    return value
