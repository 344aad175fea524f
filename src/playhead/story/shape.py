"""The form of a run that all views read: turns, calls, notes, totals. Data only; `build` makes it from events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from playhead import events
from playhead.events import Status
from playhead.llm import LlmExchange
from playhead.story.prices import Cost
from playhead.tape.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error for display: the type's name without its module, the message, and the traceback."""

    type: str
    message: str
    traceback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPiece:
    """A piece of a stream. `at_ns` counts from the call; `place` is that of the event it was in."""

    stream: str
    data: bytes
    at_ns: int
    place: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The time of an event, and the number of events before it on the tape: clocks may be equal, or wrong."""

    mono: int
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallItem:
    """One crossing of a boundary. `how` is None: it was in flight when the tape ends."""

    number: int
    ref: str
    boundary: str
    name: str
    lane: str
    wall: int
    mono: int
    at: str | None = None
    who: str | None = None
    why: str | None = None
    parent: str | None = None
    cause: str | None = None
    effect: str | None = None
    api: str | None = None
    request: Any = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    how: str | None = None
    took_ns: int | None = None
    value: Any = None
    failure: Failure | None = None
    head: Any = None
    pieces: tuple[StreamPiece, ...] = ()
    outcome: Mapping[str, Any] = field(default_factory=dict)
    place: int = 0
    ended: Mark | None = None
    llm: tuple[LlmExchange, ...] = ()
    cost: Cost | None = None

    @property
    def ok(self) -> bool:
        return self.how == "returned" and self.failure is None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeamItem:
    """A checkpoint of a turn. `at_ns` counts from the turn, `took_ns` from the seam before."""

    name: str
    at_ns: int
    took_ns: int
    value: Any = None
    passed: Mark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnItem:
    """A unit of agent work. `how` is None: the run died inside it."""

    ref: str
    name: str
    lane: str
    wall: int
    mono: int
    purpose: str | None = None
    input: Any = None
    at: str | None = None
    who: str | None = None
    parent: str | None = None
    how: str | None = None
    took_ns: int | None = None
    value: Any = None
    # For an iteration of a loop: its input context, and its decision about the next iteration.
    context: str | None = None
    decision: str | None = None
    reason: str | None = None
    failure: Failure | None = None
    seams: tuple[SeamItem, ...] = ()
    place: int = 0
    ended: Mark | None = None
    # For a request of a client to the program: its number, for `replay --request`.
    request: int | None = None

    @property
    def last_seam(self) -> str | None:
        return self.seams[-1].name if self.seams else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteItem:
    """An event of the user, or one of Playhead's own events that is shown as an item (retrieval, gap, hole…)."""

    ref: str
    kind: str
    lane: str
    wall: int
    mono: int
    at: str | None = None
    who: str | None = None
    why: str | None = None
    parent: str | None = None
    cause: str | None = None
    data: Any = None
    place: int = 0


Item = Union[CallItem, TurnItem, NoteItem]  # noqa: UP007 - read by 3.10 too


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """None: unknown. A cost is a lower bound where `unpriced` calls exist."""

    events: int = 0
    calls: int = 0
    llm_calls: int = 0
    tool_calls: int = 0
    process_calls: int = 0
    http_calls: int = 0
    failures: int = 0
    # Turns that raised, even if the program caught the error.
    failed_turns: int = 0
    # Events of the program's own kinds.
    emitted: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    unpriced: int = 0
    lost: int = 0
    holes: int = 0

    @property
    def tokens(self) -> int | None:
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A run: its items in order, and which item is below which."""

    manifest: Manifest
    status: Status
    items: Mapping[str, Item]
    # Children of an item in order of time: the calls inside it, and below an LLM call the tool calls that
    # its response requested. None: top level.
    children: Mapping[str | None, tuple[str, ...]]
    totals: Totals
    failure: Failure | None = None
    last_seam: str | None = None
    failed_turn: str | None = None
    in_flight: tuple[str, ...] = ()
    duration_ns: int = 0
    # When the agent made its first call, on the clock of the tape; None: it made none.
    agent_mono: int | None = None
    # The part of the duration before that call, most of it imports.
    start_up_ns: int = 0
    damage: tuple[str, ...] = ()
    # Events about changed files: 0 means that the history of the workspace has nothing to show.
    file_events: int = 0
    # Changes of files that are not on the tape.
    lost_file_changes: int = 0
    # False: this is the beginning of a longer tape. Calls that are open here are not in flight.
    whole: bool = True

    def failures(self) -> tuple[str, ...]:
        """Return the failed steps in the order of time: failed calls, calls that never got a response, divergences of a
        replay, and failed turns that contain none of these.
        """
        failed = [item for item in self.items.values() if self._has_failed(item)]
        explained: set[str] = set()
        for item in failed:
            above = item.parent
            while above is not None and above not in explained:
                explained.add(above)
                around = self.items.get(above)
                above = None if around is None else around.parent
        found = [one for one in failed if not isinstance(one, TurnItem) or one.ref not in explained]
        return tuple(one.ref for one in sorted(found, key=lambda item: item.place))

    def _has_failed(self, item: Item) -> bool:
        if isinstance(item, TurnItem):
            return item.failure is not None
        if isinstance(item, NoteItem):
            return item.kind == events.DIVERGENCE
        return self._failed(item)

    def _failed(self, call: CallItem) -> bool:
        # Calls that are open at the end of a part of a tape may have been answered later.
        is_over = self.status != "running" and self.whole
        return call.failure is not None or (call.how is None and is_over)

    def calls(self) -> list[CallItem]:
        found = [item for item in self.items.values() if isinstance(item, CallItem)]
        return sorted(found, key=lambda item: item.number)

    def turns(self) -> list[TurnItem]:
        return [item for item in self.items.values() if isinstance(item, TurnItem)]

    def call(self, number: int) -> CallItem | None:
        return next((item for item in self.calls() if item.number == number), None)
