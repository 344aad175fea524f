"""The one door between an agent and the world: every boundary's calls go through `Deck.open`.

Knows calls, outcomes and the mode that answers; not httpx, not subprocesses. A boundary asks
`crossing.taped` and otherwise does the thing itself, telling the crossing what it sees.
"""

from __future__ import annotations

import os

from playhead.encoding.values import safe_str
from playhead.host.interrupts import is_interrupt
from playhead.host.later import Later
from playhead.host.lean import Protocol
from playhead.recording import ambient, lanes, pacing
from playhead.recording.causes import Asked
from playhead.recording.chunks import MESSAGES as MESSAGES  # noqa: PLC0414  (handed on)
from playhead.recording.crossing import Crossing as Crossing  # noqa: PLC0414  (handed on)
from playhead.recording.crossing import inside as _inside
from playhead.recording.recorder import Recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any, TypeVar

    from playhead.events import Ref
    from playhead.recording.calls import Call as Call  # noqa: PLC0414  (handed on: see __getattr__)
    from playhead.recording.calls import Piece as Piece  # noqa: PLC0414
    from playhead.recording.calls import Taped as Taped  # noqa: PLC0414

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


_calls = Later("playhead.recording.calls")


def __getattr__(name: str) -> Any:
    """`Call`, `Piece` and `Taped` when they are first asked for: see `playhead.recording.calls`."""
    if name not in ("Call", "Piece", "Taped"):
        raise AttributeError(f"module 'playhead.recording.deck' has no attribute {name!r}")
    value = globals()[name] = getattr(_calls, name)
    return value
