"""Events to a story. Pure but for the tape it reads; knows kinds of events, not how they are shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from playhead import events
from playhead.chunks import as_bytes
from playhead.events import Event
from playhead.model.exchanges import exchanges_of, failure_of_exchange
from playhead.model.shape import (
    CallItem,
    Failure,
    Item,
    NoteItem,
    Piece,
    SeamItem,
    Story,
    TurnItem,
)
from playhead.model.totals import Prices, total
from playhead.tape.manifest import status_of
from playhead.tape.reader import Tape

_SILENT = frozenset({events.SEGMENT_START, events.SEGMENT_END, events.RUN_START, events.RUN_END, events.AMBIENT})


def tell(tape: Tape, *, prices: Prices | None = None) -> Story:
    """The story of the run on this tape, as far as it is written."""
    draft = _Draft()
    for event in tape.events():
        draft.hear(tape.whole(event))
    return draft.story(tape, prices or Prices())


class _Draft:
    """Collects events by the item that they belong to."""

    def __init__(self) -> None:
        self.count = 0
        self.first: Event | None = None
        self.last: Event | None = None
        self.calls: dict[str, Event] = {}
        self.outcomes: dict[str, Event] = {}
        self.pieces: dict[str, list[Event]] = defaultdict(list)
        self.turns: dict[str, Event] = {}
        self.turn_ends: dict[str, Event] = {}
        self.seams: dict[str, list[Event]] = defaultdict(list)
        self.notes: dict[str, Event] = {}
        self.run_end: Event | None = None
        self.order: list[str] = []
        self.lost = 0

    def hear(self, event: Event) -> None:
        self.count += 1
        self.first = self.first or event
        self.last = event
        if not event.ours:
            self._keep(self.notes, event)
        elif event.kind == events.CALL:
            self._keep(self.calls, event)
        elif event.kind == events.CHUNK:
            self.pieces[_owner(event, "call")].append(event)
        elif event.kind == events.OUTCOME:
            self.outcomes[_owner(event, "call")] = event
        elif event.kind == events.TURN_START:
            self._keep(self.turns, event)
        elif event.kind == events.TURN_END:
            self.turn_ends[_owner(event, "turn")] = event
        elif event.kind == events.SEAM and _data(event).get("turn") is not None:
            self.seams[_owner(event, "turn")].append(event)
        elif event.kind == events.RUN_END:
            self.run_end = event
        elif event.kind not in _SILENT:
            if event.kind == events.GAP:
                self.lost += int(_data(event).get("lost") or 0)
            self._keep(self.notes, event)

    def _keep(self, place: dict[str, Event], event: Event) -> None:
        place[event.ref] = event
        self.order.append(event.ref)

    def story(self, tape: Tape, prices: Prices) -> Story:
        items = self._items(prices)
        manifest = tape.manifest
        ended = _data(self.run_end) if self.run_end is not None else {}
        failed = next((one for one in reversed(list(items.values())) if _failed_turn(one)), None)
        open_turn = next((one for one in reversed(list(items.values())) if _open_turn(one)), None)
        told = failed or open_turn
        return Story(
            manifest=manifest,
            status=status_of(manifest) if self.run_end is None else ended.get("status", manifest.status),
            items=items,
            children=_family(items),
            totals=total(items.values(), events=self.count, lost=self.lost),
            failure=failure_from(ended.get("error")) or getattr(failed, "failure", None),
            last_seam=told.last_seam if isinstance(told, TurnItem) else None,
            failed_turn=told.ref if told is not None else None,
            in_flight=tuple(ref for ref, one in items.items() if isinstance(one, CallItem) and one.how is None),
            duration_ns=self.last.mono - self.first.mono if self.last and self.first else 0,
            damage=tuple(str(one) for one in tape.damage),
        )

    def _items(self, prices: Prices) -> dict[str, Item]:
        items: dict[str, Item] = {}
        number = 0
        for ref in self.order:
            if ref in self.calls:
                number += 1
                items[ref] = self._call(self.calls[ref], number, prices)
            elif ref in self.turns:
                items[ref] = self._turn(self.turns[ref])
            else:
                items[ref] = _note(self.notes[ref])
        return items

    def _call(self, event: Event, number: int, prices: Prices) -> CallItem:
        asked = _data(event)
        outcome = self.outcomes.get(event.ref)
        ended = _data(outcome) if outcome is not None else {}
        head, pieces = _stream(self.pieces.get(event.ref, ()))
        boundary = str(asked.get("boundary", ""))
        api = asked.get("api")
        llm = exchanges_of(api, asked, head, pieces) if boundary == "llm" and isinstance(api, str) else ()
        failure = failure_from(ended.get("error")) or failure_of_exchange(boundary, head, llm)
        return CallItem(
            number=number,
            ref=event.ref,
            boundary=boundary,
            name=str(asked.get("name", "")),
            lane=event.lane,
            wall=event.wall,
            mono=event.mono,
            at=event.at,
            who=event.who,
            why=event.why,
            parent=event.absolute(event.parent),
            cause=event.absolute(event.cause),
            effect=asked.get("effect"),
            api=api,
            request=asked.get("request"),
            facts={k: v for k, v in asked.items() if k not in ("boundary", "name", "request", "effect", "api")},
            how=ended.get("how"),
            took_ns=ended.get("took_ns"),
            value=ended.get("value"),
            failure=failure,
            head=head,
            pieces=pieces,
            outcome=ended,
            llm=llm,
            cost=prices.of(llm, event.wall),
        )

    def _turn(self, event: Event) -> TurnItem:
        begun = _data(event)
        end = self.turn_ends.get(event.ref)
        ended = _data(end) if end is not None else {}
        return TurnItem(
            ref=event.ref,
            name=str(begun.get("name", "")),
            lane=event.lane,
            wall=event.wall,
            mono=event.mono,
            purpose=begun.get("purpose"),
            input=begun.get("input"),
            at=event.at,
            who=event.who,
            parent=event.absolute(event.parent),
            how=ended.get("how"),
            took_ns=ended.get("took_ns"),
            value=ended.get("value"),
            failure=failure_from(ended.get("error")),
            seams=tuple(_seam(one) for one in self.seams.get(event.ref, ())),
        )


def _owner(event: Event, member: str) -> str:
    return event.absolute(_data(event).get(member)) or ""


def _data(event: Event | None) -> dict[str, Any]:
    return event.data if event is not None and isinstance(event.data, dict) else {}


def _note(event: Event) -> NoteItem:
    return NoteItem(
        ref=event.ref,
        kind=event.kind,
        lane=event.lane,
        wall=event.wall,
        mono=event.mono,
        at=event.at,
        who=event.who,
        why=event.why,
        parent=event.absolute(event.parent),
        cause=event.absolute(event.cause),
        data=event.data,
    )


def _seam(event: Event) -> SeamItem:
    data = _data(event)
    return SeamItem(
        name=str(data.get("name", "")),
        at_ns=int(data.get("at_ns") or 0),
        took_ns=int(data.get("took_ns") or 0),
        value=data.get("value"),
    )


def _stream(heard: Iterable[Event]) -> tuple[Any, tuple[Piece, ...]]:
    """Head and pieces of a call's streams, cut at the boundaries at which they came."""
    head: Any = None
    pieces: list[Piece] = []
    for event in heard:
        data = _data(event)
        stream = str(data.get("stream", ""))
        if stream == "head":
            head = data.get("value")
            continue
        pieces.extend(cut(stream, as_bytes(data), data.get("sizes"), data.get("at_ns")))
    return head, tuple(pieces)


def cut(stream: str, raw: bytes, sizes: Any, times: Any) -> list[Piece]:
    """The pieces that share one event. Sizes that do not add up (a level below full, an edited
    tape) leave one piece: the bytes are what counts."""
    times = times if isinstance(times, list) and times else [0]
    if not isinstance(sizes, list) or sum(one for one in sizes if isinstance(one, int)) != len(raw):
        return [Piece(stream=stream, data=raw, at_ns=_int(times[0]))]
    pieces = []
    at = 0
    for index, size in enumerate(sizes):
        when = _int(times[min(index, len(times) - 1)])
        pieces.append(Piece(stream=stream, data=raw[at : at + size], at_ns=when))
        at += size
    return pieces


def _int(value: Any) -> int:
    return value if isinstance(value, int) else 0


def failure_from(frozen: Any) -> Failure | None:
    """A frozen exception as something to show."""
    if not isinstance(frozen, dict) or "$exception" not in frozen:
        return None
    name = str(frozen["$exception"]).rpartition(":")[2]
    trace = frozen.get("traceback")
    lines = tuple(str(line) for line in trace) if isinstance(trace, list) else ()
    return Failure(type=name, message=str(frozen.get("message") or ""), traceback=lines)


def _failed_turn(item: Item) -> bool:
    return isinstance(item, TurnItem) and item.how == "raised"


def _open_turn(item: Item) -> bool:
    return isinstance(item, TurnItem) and item.how is None


def _family(items: Mapping[str, Item]) -> dict[str | None, tuple[str, ...]]:
    """Who stands under whom: under the response that asked for it, else under what encloses it."""
    children: dict[str | None, list[str]] = defaultdict(list)
    for ref, item in items.items():
        above = getattr(item, "cause", None)
        if above not in items:
            above = item.parent
        children[above if above in items and above != ref else None].append(ref)
    return {above: tuple(below) for above, below in children.items()}
