"""Events to a story. Knows kinds of events and the tape it reads; not how a story is shown."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from playhead import events
from playhead.errors import TapeDamaged
from playhead.event import brought_along
from playhead.events import Event, Status
from playhead.host import garbage
from playhead.story.agent_output import Voice, overhear
from playhead.story.call_streams import whole_number
from playhead.story.item_tree import family
from playhead.story.items import Heard, call_item, data_of, failure_from, note_item, turn_item
from playhead.story.original_calls import borrow, quiet_ref
from playhead.story.shape import CallItem, Failure, Item, Story, TurnItem
from playhead.story.totals import Prices, total
from playhead.tape.blobs import SPILLED
from playhead.tape.manifest import status_of
from playhead.tape.reader import Tape
from playhead.transcripts.transcript_events import RESULT

STATUSES: tuple[Status, ...] = ("ok", "failed", "interrupted", "running")


def tell(
    tape: Tape,
    *,
    prices: Prices | None = None,
    original: Tape | None = None,
    first: int | None = None,
) -> Story:
    """The story of the run on this tape, as far as it is written and can be read. `original`: the tape
    that a replay was made from, where it does not lie beside it. `first`: of so many events only; where
    there are more, it is a beginning (`Story.whole`), and nothing in it is priced: loading the price
    list takes longer than telling it.
    """
    draft = _Draft()
    with garbage.left_alone():
        for event, _, raw in tape.rows():
            if draft.count == first:
                draft.whole = False
                break
            if SPILLED not in raw:
                draft.hear(event)
                continue
            try:
                draft.hear(tape.whole(event))
            except TapeDamaged as error:
                # A payload is gone; what stands in the line itself is still worth telling.
                draft.damage.append(f"{event.ref}: {error}")
                draft.hear(event)
        draft.borrow(tape, original, first)
        draft.overhear()
        return draft.story(tape, prices or Prices() if draft.whole else None)


class _Draft:
    """Collects events by the item that they belong to."""

    def __init__(self) -> None:
        self.whole = True
        self.count = 0
        self.first: Event | None = None
        self.last: Event | None = None
        self.calls: dict[str, Heard] = {}
        self.outcomes: dict[str, Heard] = {}
        self.pieces: dict[str, list[Heard]] = defaultdict(list)
        self.turns: dict[str, Heard] = {}
        self.turn_ends: dict[str, Heard] = {}
        self.seams: dict[str, list[Heard]] = defaultdict(list)
        self.notes: dict[str, Heard] = {}
        self.run_end: Event | None = None
        self.order: list[str] = []
        self.damage: list[str] = []
        # What the program said last on stderr: the reason, where a run fails without an exception.
        self.complaint = ""
        self.lost = 0

    def hear(self, event: Event, place: int | None = None) -> None:
        """`place`: how many events stand before it on the tape; None: as many as were heard."""
        heard = event, self.count if place is None else place
        self.count += 1
        if self.first is None:
            self.first = event
        self.last = event
        kind = event.kind
        if not event.ours:
            self._keep(self.notes, heard)
        elif kind == events.CHUNK:
            self.pieces[_owner(event, "call")].append(heard)
        elif kind == events.CALL:
            self._keep(self.calls, heard)
        elif kind == events.OUTCOME:
            owner = _owner(event, "call")
            self.outcomes[owner] = heard
            if late := brought_along(event):
                self.pieces[owner] += [(one, heard[1]) for one in late]
        elif kind == events.TURN_START:
            self._keep(self.turns, heard)
        elif kind == events.TURN_END:
            self.turn_ends[_owner(event, "turn")] = heard
        else:
            self._hear_rare(heard)

    def _hear_rare(self, heard: Heard) -> None:
        event = heard[0]
        if event.kind == events.SEAM and data_of(event).get("turn") is not None:
            self.seams[_owner(event, "turn")].append(heard)
        elif event.kind == events.RUN_END:
            self.run_end = event
        elif event.kind == events.RUN_START:
            self._begin(heard)
        elif events.kind_of(event.kind).in_story:
            if event.kind == events.GAP:
                self.lost += whole_number(data_of(event).get("lost"))
            elif event.kind == events.OUTPUT and data_of(event).get("stream") == "stderr":
                self.complaint = _last_line(data_of(event).get("text")) or self.complaint
            self._keep(self.notes, heard)

    def borrow(self, tape: Tape, original: Tape | None, first: int | None) -> None:
        """Requests and answers that a replay left on the tape it was made from."""
        quiet = {ref: of for ref, one in self.calls.items() if (of := quiet_ref(one[0].data))}
        loans = borrow(tape, quiet.values(), original, first)
        for ref, of in quiet.items():
            loan = loans.get(of)
            if loan is None or loan.call is None:
                continue
            asked, place = self.calls[ref]
            told = {**loan.call.data, "match": asked.data["match"]}
            self.calls[ref] = dataclasses.replace(asked, data=told), place
            # On this tape they stand where the call does.
            if loan.outcome is not None:
                self.outcomes[ref] = loan.outcome, place
            self.pieces[ref] = [(one, place) for one in loan.pieces]

    def overhear(self) -> None:
        """What agents said of themselves. It stands after everything that is on the tape: calls keep
        the numbers by which a replay knows them.
        """
        llm = [one for one, _ in self.calls.values() if data_of(one).get("boundary") == "llm"]
        told = list(overhear(self._voices(), llm, self.first))
        known = self.count, self.first, self.last
        for event, place in told:
            self.hear(event, place)
            if event.kind == RESULT and isinstance(event.data, dict):
                self.complaint = _last_line(event.data.get("error")) or self.complaint
        self.count, self.first, self.last = known

    def _voices(self) -> Iterator[Voice]:
        for ref, (call, _) in self.calls.items():
            if data_of(call).get("boundary") == "process":
                ended = self.outcomes.get(ref)
                heard = [one for one in self.pieces.get(ref, ()) if _is_stdout(one[0])]
                yield Voice(call=call, heard=heard, until=None if ended is None else ended[0].wall)
        printed = [
            one
            for one in self.notes.values()
            if one[0].kind == events.OUTPUT and _is_stdout(one[0])
        ]
        yield Voice(call=None, heard=printed, until=None)

    def _begin(self, heard: Heard) -> None:
        """A run that was resumed has not ended, whatever the tape says before."""
        self.run_end = None
        if data_of(heard[0]).get("resumed"):
            self._keep(self.notes, heard)

    def _keep(self, among: dict[str, Heard], heard: Heard) -> None:
        ref = heard[0].ref
        among[ref] = heard
        self.order.append(ref)

    def story(self, tape: Tape, prices: Prices | None) -> Story:
        items = self._items(prices)
        status = self._status(tape)
        # What a beginning leaves open is on the rest of the tape: nothing there ended badly yet.
        turn = _last_turn(items, status) if self.whole else None
        lasted = max(0, self.last.mono - self.first.mono) if self.last and self.first else 0
        return Story(
            manifest=tape.manifest,
            status=status,
            items=items,
            children=family(items),
            totals=total(items.values(), events=self.count, lost=self.lost),
            failure=self._failure(turn)
            if self.whole and status in ("failed", "interrupted")
            else None,
            last_seam=turn.last_seam if turn is not None else None,
            failed_turn=turn.ref if turn is not None else None,
            in_flight=tuple(
                ref
                for ref, one in items.items()
                if self.whole and isinstance(one, CallItem) and one.how is None
            ),
            duration_ns=lasted
            if self.whole
            else max(lasted, int((tape.manifest.duration_s or 0) * 1e9)),
            whole=self.whole,
            damage=(*(str(one) for one in tape.damage), *self.damage),
        )

    def _status(self, tape: Tape) -> Status:
        """The tape's own word; a tape without a last one was interrupted, or goes on."""
        said = data_of(self.run_end).get("status")
        for status in STATUSES:
            if said == status:
                return status
        return status_of(tape.manifest)

    def _failure(self, turn: TurnItem | None) -> Failure | None:
        """Why the run ended badly: the error that left it, that of its last turn, its exit code."""
        ended = data_of(self.run_end)
        failure = failure_from(ended.get("error")) or (turn.failure if turn is not None else None)
        code = ended.get("exit_code")
        if failure is None and isinstance(code, int) and code:
            said = f"signal {-code}" if code < 0 else f"exit code {code}"
            return Failure(type=said, message=self.complaint)
        return failure

    def _items(self, prices: Prices | None) -> dict[str, Item]:
        items: dict[str, Item] = {}
        number = 0
        for ref in self.order:
            if (call := self.calls.get(ref)) is not None:
                number += 1
                items[ref] = call_item(
                    call,
                    number=number,
                    outcome=self.outcomes.get(ref),
                    pieces=self.pieces.get(ref, ()),
                    prices=prices,
                )
            elif (turn := self.turns.get(ref)) is not None:
                items[ref] = turn_item(
                    turn, end=self.turn_ends.get(ref), seams=self.seams.get(ref, ())
                )
            else:
                items[ref] = note_item(self.notes[ref])
        return items


def _is_stdout(event: Event) -> bool:
    return data_of(event).get("stream") == "stdout"


def _owner(event: Event, member: str) -> str:
    data = event.data
    ref = data.get(member) if isinstance(data, dict) else None
    # As `Event.absolute` has it, without the calls: two of three events go through here.
    if isinstance(ref, int):
        return f"{event.seg or event.pid}:{ref}"
    return ref if isinstance(ref, str) else ""


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
