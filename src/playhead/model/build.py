"""Events to a story. Knows kinds of events and the tape it reads; not how a story is shown."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from playhead import events, garbage
from playhead.errors import TapeDamaged
from playhead.event import brought_along
from playhead.events import Event, Status
from playhead.model.borrow import borrow, quiet_ref
from playhead.model.exchanges import exchanges_of, failure_of_exchange
from playhead.model.family import family
from playhead.model.overheard import Voice, overhear
from playhead.model.shape import (
    CallItem,
    Failure,
    Item,
    Mark,
    NoteItem,
    SeamItem,
    Story,
    TurnItem,
)
from playhead.model.streams import stream_of, whole_number
from playhead.model.totals import NOTHING, Prices, total
from playhead.streams.telling import RESULT
from playhead.tape.manifest import status_of
from playhead.tape.reader import Tape
from playhead.tape.spill import SPILLED

STATUSES: tuple[Status, ...] = ("ok", "failed", "interrupted", "running")
_SILENT = frozenset({events.SEGMENT_START, events.SEGMENT_END, events.AMBIENT})


def tell(tape: Tape, *, prices: Prices | None = None, original: Tape | None = None) -> Story:
    """The story of the run on this tape, as far as it is written and can be read. `original`: the tape
    that a replay was made from, where it does not lie beside it.
    """
    draft = _Draft()
    with garbage.left_alone():
        for event, _, raw in tape.rows():
            if SPILLED not in raw:
                draft.hear(event)
                continue
            try:
                draft.hear(tape.whole(event))
            except TapeDamaged as error:
                # A payload is gone; what stands in the line itself is still worth telling.
                draft.damage.append(f"{event.ref}: {error}")
                draft.hear(event)
        draft.borrow(tape, original)
        draft.overhear()
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
        # How many events stand before this one on the tape.
        self.places: dict[str, int] = {}
        self.damage: list[str] = []
        # What the program said last on stderr: the reason, where a run fails without an exception.
        self.complaint = ""
        self.lost = 0

    def hear(self, event: Event) -> None:
        self.places[event.ref] = self.count
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
            owner = _owner(event, "call")
            self.outcomes[owner] = event
            self.pieces[owner] += brought_along(event)
        elif event.kind == events.TURN_START:
            self._keep(self.turns, event)
        elif event.kind == events.TURN_END:
            self.turn_ends[_owner(event, "turn")] = event
        elif event.kind == events.SEAM and _data(event).get("turn") is not None:
            self.seams[_owner(event, "turn")].append(event)
        elif event.kind == events.RUN_END:
            self.run_end = event
        elif event.kind == events.RUN_START:
            self._begin(event)
        elif event.kind not in _SILENT:
            if event.kind == events.GAP:
                self.lost += whole_number(_data(event).get("lost"))
            elif event.kind == events.OUTPUT and _data(event).get("stream") == "stderr":
                self.complaint = _last_line(_data(event).get("text")) or self.complaint
            self._keep(self.notes, event)

    def borrow(self, tape: Tape, original: Tape | None) -> None:
        """Requests and answers that a replay left on the tape it was made from."""
        quiet = {ref: of for ref, event in self.calls.items() if (of := quiet_ref(event.data))}
        loans = borrow(tape, quiet.values(), original)
        for ref, of in quiet.items():
            loan = loans.get(of)
            if loan is None or loan.call is None:
                continue
            told = {**loan.call.data, "match": self.calls[ref].data["match"]}
            self.calls[ref] = dataclasses.replace(self.calls[ref], data=told)
            if loan.outcome is not None:
                self.outcomes[ref] = loan.outcome
            self.pieces[ref] = loan.pieces
            # On this tape they stand where the call does.
            for event in (*loan.pieces, *([loan.outcome] if loan.outcome else ())):
                self.places.setdefault(event.ref, self.places[ref])

    def overhear(self) -> None:
        """What agents said of themselves. It stands after everything that is on the tape: calls keep
        the numbers by which a replay knows them.
        """
        llm = [one for one in self.calls.values() if _data(one).get("boundary") == "llm"]
        told = list(overhear(self._voices(), llm, self.places, self.first))
        heard = self.count, self.first, self.last
        for event, place in told:
            self.hear(event)
            self.places[event.ref] = place
            if event.kind == RESULT and isinstance(event.data, dict):
                self.complaint = _last_line(event.data.get("error")) or self.complaint
        self.count, self.first, self.last = heard

    def _voices(self) -> Iterator[Voice]:
        for ref, call in self.calls.items():
            if _data(call).get("boundary") == "process":
                ended = self.outcomes.get(ref)
                heard = [one for one in self.pieces.get(ref, ()) if _is_stdout(one)]
                yield Voice(call=call, heard=heard, until=None if ended is None else ended.wall)
        notes = (self.notes[ref] for ref in self.order if ref in self.notes)
        printed = [one for one in notes if one.kind == events.OUTPUT and _is_stdout(one)]
        yield Voice(call=None, heard=printed, until=None)

    def _begin(self, event: Event) -> None:
        """A run that was resumed has not ended, whatever the tape says before."""
        self.run_end = None
        if _data(event).get("resumed"):
            self._keep(self.notes, event)

    def _keep(self, place: dict[str, Event], event: Event) -> None:
        place[event.ref] = event
        self.order.append(event.ref)

    def story(self, tape: Tape, prices: Prices) -> Story:
        items = self._items(prices)
        status = self._status(tape)
        turn = _last_turn(items, status)
        return Story(
            manifest=tape.manifest,
            status=status,
            items=items,
            children=family(items),
            totals=total(items.values(), events=self.count, lost=self.lost),
            failure=self._failure(turn) if status in ("failed", "interrupted") else None,
            last_seam=turn.last_seam if turn is not None else None,
            failed_turn=turn.ref if turn is not None else None,
            in_flight=tuple(
                ref for ref, one in items.items() if isinstance(one, CallItem) and one.how is None
            ),
            duration_ns=max(0, self.last.mono - self.first.mono) if self.last and self.first else 0,
            damage=(*(str(one) for one in tape.damage), *self.damage),
        )

    def _status(self, tape: Tape) -> Status:
        """The tape's own word; a tape without a last one was interrupted, or goes on."""
        said = _data(self.run_end).get("status")
        for status in STATUSES:
            if said == status:
                return status
        return status_of(tape.manifest)

    def _failure(self, turn: TurnItem | None) -> Failure | None:
        """Why the run ended badly: the error that left it, that of its last turn, its exit code."""
        ended = _data(self.run_end)
        failure = failure_from(ended.get("error")) or (turn.failure if turn is not None else None)
        code = ended.get("exit_code")
        if failure is None and isinstance(code, int) and code:
            said = f"signal {-code}" if code < 0 else f"exit code {code}"
            return Failure(type=said, message=self.complaint)
        return failure

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
                items[ref] = _note(self.notes[ref], self.places[ref])
        return items

    def _call(self, event: Event, number: int, prices: Prices) -> CallItem:
        asked = _data(event)
        outcome = self.outcomes.get(event.ref)
        ended = _data(outcome) if outcome is not None else {}
        heard = self.pieces.get(event.ref, ())
        head, pieces = stream_of((chunk, self.places[chunk.ref]) for chunk in heard)
        boundary = str(asked.get("boundary", ""))
        api = asked.get("api")
        llm = (
            exchanges_of(api, asked, head, pieces)
            if boundary == "llm" and isinstance(api, str)
            else ()
        )
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
            facts={
                k: v
                for k, v in asked.items()
                if k not in ("boundary", "name", "request", "effect", "api")
            },
            how=ended.get("how"),
            took_ns=ended.get("took_ns"),
            value=ended.get("value"),
            failure=failure,
            head=head,
            pieces=pieces,
            outcome=ended,
            place=self.places[event.ref],
            ended=self._mark(outcome),
            llm=llm,
            cost=NOTHING if llm and _is_served(asked) else prices.of(llm, event.wall),
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
            seams=tuple(_seam(one, self._mark(one)) for one in self.seams.get(event.ref, ())),
            place=self.places[event.ref],
            ended=self._mark(end),
        )

    def _mark(self, event: Event | None) -> Mark | None:
        return None if event is None else Mark(mono=event.mono, place=self.places[event.ref])


def _is_served(asked: Mapping[str, Any]) -> bool:
    """Whether this call was answered from the tape of another run."""
    match = asked.get("match")
    return isinstance(match, dict) and "of" in match


def _is_stdout(event: Event) -> bool:
    return _data(event).get("stream") == "stdout"


def _owner(event: Event, member: str) -> str:
    return event.absolute(_data(event).get(member)) or ""


def _data(event: Event | None) -> dict[str, Any]:
    return event.data if event is not None and isinstance(event.data, dict) else {}


def _note(event: Event, place: int) -> NoteItem:
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
        place=place,
    )


def _seam(event: Event, passed: Mark | None) -> SeamItem:
    data = _data(event)
    return SeamItem(
        name=str(data.get("name", "")),
        at_ns=whole_number(data.get("at_ns")),
        took_ns=whole_number(data.get("took_ns")),
        value=data.get("value"),
        passed=passed,
    )


def failure_from(frozen: Any) -> Failure | None:
    """A frozen exception as something to show."""
    if not isinstance(frozen, dict) or "$exception" not in frozen:
        return None
    name = str(frozen["$exception"]).rpartition(":")[2]
    trace = frozen.get("traceback")
    lines = tuple(str(line) for line in trace) if isinstance(trace, list) else ()
    return Failure(type=name, message=str(frozen.get("message") or ""), traceback=lines)


def _last_turn(items: Mapping[str, Item], status: Status) -> TurnItem | None:
    """The turn that a run ended in: one that failed, else one that was under way.

    In a run that went well, or goes on, a turn that failed is part of the story and no end of it.
    """
    if status not in ("failed", "interrupted"):
        return None
    turns = [item for item in items.values() if isinstance(item, TurnItem)]
    open_ones = [turn for turn in turns if turn.how is None]
    failed = [turn for turn in turns if turn.how == "raised"]
    found = failed or open_ones if status == "failed" else open_ones or failed
    # The innermost: the one that began last.
    return found[-1] if found else None


def _last_line(text: Any) -> str:
    lines = text.strip().splitlines() if isinstance(text, str) else []
    return lines[-1].strip() if lines else ""
