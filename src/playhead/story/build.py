"""Build a story from the events of a tape. Knows kinds of events; does not know how a story is shown."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from playhead import events
from playhead.errors import TapeDamaged
from playhead.event import brought_along
from playhead.events import Event, Status
from playhead.replay.inbound_requests import InboundRequests
from playhead.story.agent_output import OutputStream, reported_events
from playhead.story.call_contents import whole_number
from playhead.story.derived_tools import with_derived_tools
from playhead.story.items import (
    PlacedEvent,
    call_item,
    data_of,
    failure_from,
    family,
    note_item,
    turn_item,
)
from playhead.story.original_calls import left_out_ref, read_original_calls
from playhead.story.shape import CallItem, Failure, Item, Story, TurnItem
from playhead.story.start_up import with_start_up_folded
from playhead.story.totals import Prices, total
from playhead.tape.blobs import SPILLED
from playhead.tape.first_call import starts_agent
from playhead.tape.manifest import status_of
from playhead.tape.reader import Tape, collector_paused
from playhead.tape.reading.file_losses import FileLosses
from playhead.tape.reading.partial_run import FIRST_BLOBS, spilled_bytes
from playhead.transcripts.transcript_events import RESULT

STATUSES: tuple[Status, ...] = ("ok", "failed", "interrupted", "running")


def tell(
    tape: Tape,
    *,
    prices: Prices | None = None,
    original: Tape | None = None,
    first: int | None = None,
) -> Story:
    """Build the story of the run on this tape, as far as it is written and readable.

    `original` is the tape of a replay's original where it is not beside the replay. `first` limits the number of
    events: a longer tape gives a beginning (`Story.whole` is False) without prices, because loading the price
    list takes longer than building it.
    """
    draft = _Draft()
    # A first view of a run in a shared store fetches a few payloads; the others are left out.
    payloads = FIRST_BLOBS if first is not None and tape.is_partial else None
    if first is not None:
        first = tape.first_events(first)
    with collector_paused():
        for event, _, raw in tape.rows():
            if draft.count == first:
                draft.whole = False
                break
            if SPILLED not in raw:
                draft.add(event)
                continue
            if payloads is not None:
                payloads -= spilled_bytes(raw)
                if payloads < 0:
                    draft.add(event)
                    continue
            try:
                draft.add(tape.whole(event))
            except TapeDamaged as error:
                # The payload is missing, but the rest of the event is still useful.
                draft.damage.append(f"{event.ref}: {error}")
                draft.add(event)
        draft.fetch_originals(tape, original, first)
        draft.add_reported()
        return draft.story(tape, prices or Prices() if draft.whole else None)


class _Draft:
    """Collects events by the item that they belong to."""

    def __init__(self) -> None:
        self.whole = True
        self.count = 0
        self.first: Event | None = None
        # The first event that is the agent's work, and not a library being loaded.
        self.began: Event | None = None
        # The monotonic clock may have restarted in a later part.
        self.is_resumed = False
        self.last: Event | None = None
        self.calls: dict[str, PlacedEvent] = {}
        self.outcomes: dict[str, PlacedEvent] = {}
        self.pieces: dict[str, list[PlacedEvent]] = defaultdict(list)
        self.turns: dict[str, PlacedEvent] = {}
        self.turn_ends: dict[str, PlacedEvent] = {}
        self.seams: dict[str, list[PlacedEvent]] = defaultdict(list)
        self.notes: dict[str, PlacedEvent] = {}
        self.run_end: Event | None = None
        self.order: list[str] = []
        self.damage: list[str] = []
        # The last line on stderr, which gives the reason if a run failed without an exception.
        self.last_stderr_line = ""
        self.lost = 0
        self.file_events = 0
        self.file_losses = FileLosses()

    def add(self, event: Event, place: int | None = None) -> None:
        """Add an event. `place` is its position on the tape; None: after all events so far."""
        placed = event, self.count if place is None else place
        self.count += 1
        if self.first is None:
            self.first = event
        if self.began is None and not self.is_resumed and starts_agent(event):
            self.began = event
        self.last = event
        kind = event.kind
        if not event.ours:
            self._keep(self.notes, placed)
        elif kind == events.CHUNK:
            self.pieces[_owner(event, "call")].append(placed)
        elif kind == events.CALL:
            self._keep(self.calls, placed)
        elif kind == events.OUTCOME:
            owner = _owner(event, "call")
            self.outcomes[owner] = placed
            if late := brought_along(event):
                self.pieces[owner] += [(one, placed[1]) for one in late]
        elif kind == events.TURN_START:
            self._keep(self.turns, placed)
        elif kind == events.TURN_END:
            self.turn_ends[_owner(event, "turn")] = placed
        else:
            self._add_rare(placed)

    def _add_rare(self, placed: PlacedEvent) -> None:
        event = placed[0]
        if event.kind == events.SEAM and data_of(event).get("turn") is not None:
            self.seams[_owner(event, "turn")].append(placed)
        elif event.kind == events.RUN_END:
            self.run_end = event
        elif event.kind == events.RUN_START:
            self._begin(placed)
        elif event.kind == events.FILES:
            self.file_events += self.file_losses.add(event)
        elif events.kind_of(event.kind).in_story:
            if event.kind == events.GAP and data_of(event).get("left_out"):
                return  # events of other requests, which are on the tape of the server's run
            if event.kind == events.GAP:
                self.lost += whole_number(data_of(event).get("lost"))
            elif event.kind == events.OUTPUT and data_of(event).get("stream") == "stderr":
                self.last_stderr_line = (
                    _last_line(data_of(event).get("text")) or self.last_stderr_line
                )
            self._keep(self.notes, placed)

    def fetch_originals(self, tape: Tape, original: Tape | None, first: int | None) -> None:
        """Fetch the requests and answers that a replay did not repeat from the tape of its original."""
        quiet = {ref: of for ref, one in self.calls.items() if (of := left_out_ref(one[0].data))}
        originals = read_original_calls(tape, quiet.values(), original, first)
        for ref, of in quiet.items():
            found = originals.get(of)
            if found is None or found.call is None:
                continue
            asked, place = self.calls[ref]
            data = {**found.call.data, "match": asked.data["match"]}
            self.calls[ref] = dataclasses.replace(asked, data=data), place
            # On this tape they get the place of the call.
            if found.outcome is not None:
                self.outcomes[ref] = found.outcome, place
            self.pieces[ref] = [(one, place) for one in found.pieces]

    def add_reported(self) -> None:
        """Add the events that agents reported on stdout, after all recorded calls, which keep their numbers."""
        llm = [one for one, _ in self.calls.values() if data_of(one).get("boundary") == "llm"]
        reported = list(reported_events(self._outputs(), llm, self.first))
        known = self.count, self.first, self.last
        for event, place in reported:
            self.add(event, place)
            if event.kind == RESULT and isinstance(event.data, dict):
                self.last_stderr_line = _last_line(event.data.get("error")) or self.last_stderr_line
        self.count, self.first, self.last = known

    def _outputs(self) -> Iterator[OutputStream]:
        for ref, (call, _) in self.calls.items():
            if data_of(call).get("boundary") == "process":
                ended = self.outcomes.get(ref)
                placed = [one for one in self.pieces.get(ref, ()) if _is_stdout(one[0])]
                yield OutputStream(
                    call=call, pieces=placed, until=None if ended is None else ended[0].wall
                )
        printed = [
            one
            for one in self.notes.values()
            if one[0].kind == events.OUTPUT and _is_stdout(one[0])
        ]
        yield OutputStream(call=None, pieces=printed, until=None)

    def _begin(self, placed: PlacedEvent) -> None:
        """Start or resume the run: a resumed run has not ended, even if the tape has an earlier `run.end`."""
        self.run_end = None
        if data_of(placed[0]).get("resumed"):
            self.is_resumed = True
            self._keep(self.notes, placed)

    def _keep(self, among: dict[str, PlacedEvent], placed: PlacedEvent) -> None:
        ref = placed[0].ref
        among[ref] = placed
        self.order.append(ref)

    def story(self, tape: Tape, prices: Prices | None) -> Story:
        items = with_start_up_folded(with_derived_tools(self._items(prices)))
        status = self._status(tape)
        # Calls that are open at the end of a first part may end in the rest of the tape: that is not a failure.
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
            agent_mono=None if self.began is None else self.began.mono,
            start_up_ns=max(0, self.began.mono - self.first.mono)
            if self.began and self.first
            else 0,
            whole=self.whole,
            damage=(*(str(one) for one in tape.damage), *self.damage),
            file_events=self.file_events,
            lost_file_changes=self.file_losses.count,
        )

    def _status(self, tape: Tape) -> Status:
        """Return the status in `run.end`; without one, the run was interrupted or is still running."""
        said = data_of(self.run_end).get("status")
        for status in STATUSES:
            if said == status:
                return status
        return status_of(tape.manifest)

    def _failure(self, turn: TurnItem | None) -> Failure | None:
        """Return why the run failed: its own error, that of its last turn, or its exit code."""
        ended = data_of(self.run_end)
        failure = failure_from(ended.get("error")) or (turn.failure if turn is not None else None)
        code = ended.get("exit_code")
        if failure is None and isinstance(code, int) and code:
            said = f"signal {-code}" if code < 0 else f"exit code {code}"
            return Failure(type=said, message=self.last_stderr_line)
        return failure

    def _items(self, prices: Prices | None) -> dict[str, Item]:
        items: dict[str, Item] = {}
        number = 0
        requests = InboundRequests([event for event, _ in self.turns.values()]).numbers
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
                    turn,
                    end=self.turn_ends.get(ref),
                    seams=self.seams.get(ref, ()),
                    request=requests.get(ref),
                )
            else:
                items[ref] = note_item(self.notes[ref])
        return items


def _is_stdout(event: Event) -> bool:
    return data_of(event).get("stream") == "stdout"


def _owner(event: Event, member: str) -> str:
    data = event.data
    ref = data.get(member) if isinstance(data, dict) else None
    # The same as `Event.absolute`, but inlined for speed: two of three events pass here.
    if isinstance(ref, int):
        return f"{event.seg or event.pid}:{ref}"
    return ref if isinstance(ref, str) else ""


def _last_turn(items: Mapping[str, Item], status: Status) -> TurnItem | None:
    """Return the turn in which a run ended: one that failed, or one that was not finished.

    In a run that succeeded or is still running, a failed turn is only a part of the story.
    """
    if status not in ("failed", "interrupted"):
        return None
    turns = [item for item in items.values() if isinstance(item, TurnItem)]
    open_ones = [turn for turn in turns if turn.how is None]
    failed = [turn for turn in turns if turn.how == "raised"]
    found = failed or open_ones if status == "failed" else open_ones or failed
    # The innermost turn: the one that began last.
    return found[-1] if found else None


def _last_line(text: Any) -> str:
    lines = text.strip().splitlines() if isinstance(text, str) else []
    return lines[-1].strip() if lines else ""
