"""The calls on a tape, ready to be served. Knows events and the tape; not how calls are matched."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from playhead import events
from playhead.encoding.values import thaw
from playhead.events import Event
from playhead.host import garbage
from playhead.recording.chunks import as_bytes
from playhead.recording.deck import Piece, Taped
from playhead.replay.matching.fingerprint import plain_key
from playhead.replay.matching.raising import rebuild
from playhead.tape.reader import Tape
from playhead.tape.spill import SPILLED


@dataclass(slots=True, kw_only=True, eq=False)
class TapedCall:
    """A call as it was made then. Mutable in one thing only: whether it has been served."""

    number: int
    event: Event
    key: Hashable
    outcome: Event | None = None
    chunks: list[Event] = field(default_factory=list)
    served: bool = False
    # Whether a part of it lies in blobs: to look for that in every answer takes as long as to find it.
    spilled: bool = False

    @property
    def ref(self) -> str:
        return self.event.ref

    @property
    def lane(self) -> str:
        return self.event.lane

    @property
    def boundary(self) -> str:
        return str(self.event.data.get("boundary", ""))

    @property
    def name(self) -> str:
        return str(self.event.data.get("name", ""))

    @property
    def request(self) -> Any:
        return self.event.data.get("request")


@dataclass(slots=True, kw_only=True)
class Recording:
    """What a process may ask of the tape: its own calls, and those of the children it forked."""

    tape: Tape
    calls: list[TapedCall]
    # The children of each call: what a taped answer makes unnecessary.
    below: dict[str, list[TapedCall]]
    segments: dict[str, Event]
    ambient: list[Event]
    outputs: list[Event]
    run_start: Event | None = None
    run_end: Event | None = None
    # Segments whose process said goodbye: the others were killed, or left without a word.
    closed: set[str] = field(default_factory=set)

    @property
    def was_killed(self) -> bool:
        """Whether a process that made calls never came to its end."""
        return any(call.event.segment not in self.closed for call in self.calls)


def load(tape: Tape) -> Recording:
    """Read the whole tape once. Blobs stay on disk until their call is served."""
    recording = Recording(
        tape=tape,
        calls=[],
        below={},
        segments={},
        ambient=[],
        outputs=[],
    )
    by_ref: dict[tuple[str, int], TapedCall] = {}
    with garbage.left_alone():
        for event, _, raw in tape.rows():
            if event.ours:
                _hear(recording, by_ref, event, spilled=SPILLED in raw)
    return recording


def _hear(
    recording: Recording, by_ref: dict[tuple[str, int], TapedCall], event: Event, *, spilled: bool
) -> None:
    kind = event.kind
    if kind == events.CALL:
        _call(recording, by_ref, event, spilled=spilled)
    elif kind in (events.CHUNK, events.OUTCOME):
        owner = by_ref.get((event.segment, event.data.get("call")))
        if owner is None:
            return
        owner.spilled = owner.spilled or spilled
        if kind == events.CHUNK:
            owner.chunks.append(event)
        else:
            owner.outcome = event
    elif kind == events.SEGMENT_START:
        recording.segments[event.segment] = event
    elif kind == events.SEGMENT_END:
        recording.closed.add(event.segment)
    elif kind == events.AMBIENT:
        recording.ambient.append(recording.tape.whole(event) if spilled else event)
    elif kind == events.OUTPUT:
        recording.outputs.append(event)
    elif kind == events.RUN_START and recording.run_start is None:
        recording.run_start = event
    elif kind == events.RUN_END:
        recording.run_end = event


def _call(
    recording: Recording, by_ref: dict[tuple[str, int], TapedCall], event: Event, *, spilled: bool
) -> None:
    if not isinstance(event.data, dict):
        return
    if spilled:
        event = recording.tape.whole(event)
    call = TapedCall(
        number=len(recording.calls) + 1, event=event, key=plain_key(event.data.get("request"))
    )
    recording.calls.append(call)
    segment = event.segment
    by_ref[segment, event.seq] = call
    parent = event.parent
    if isinstance(parent, str):
        above, _, seq = parent.rpartition(":")
        place = (above, int(seq) if seq.isdigit() else -1)
    else:
        place = (segment, -1 if parent is None else parent)
    enclosing = by_ref.get(place)
    if enclosing is not None:
        recording.below.setdefault(enclosing.ref, []).append(call)


def answer_of(
    tape: Tape,
    call: TapedCall,
    *,
    match: dict[str, Any],
    dies: Callable[[], None] | None = None,
    quiet: bool = False,
) -> Taped:
    """The taped answer, its pieces cut where they were. A call without an outcome was in flight when
    the run died: it is served as far as it came, and then `dies` ends the process.
    """
    whole = tape.whole if call.spilled else _as_it_is
    ended = {} if call.outcome is None else whole(call.outcome).data
    head: Any = None
    pieces: list[Piece] = []
    # The last of them may have waited for the outcome, and came onto the tape with it.
    for data in [*(whole(event).data for event in call.chunks), *ended.get("streams", ())]:
        stream = str(data.get("stream", ""))
        if stream == "head":
            head = data.get("value")
            continue
        pieces.extend(_pieces(stream, data))
    if call.outcome is None:
        error = ConnectionResetError("the recorded run was killed here")
        return Taped(
            how="cut", head=head, pieces=pieces, error=error, match=match, dies=dies, quiet=quiet
        )
    known = ("call", "how", "took_ns", "value", "error", "chunks", "bytes", "streams")
    return Taped(
        how=str(ended.get("how", "returned")),
        value=thaw(ended.get("value")),
        frozen=ended.get("value"),
        error=rebuild(ended.get("error")),
        frozen_error=ended.get("error"),
        head=head,
        pieces=pieces,
        facts={name: item for name, item in ended.items() if name not in known},
        took_ns=int(ended.get("took_ns") or 0),
        match=match,
        quiet=quiet,
    )


def _as_it_is(event: Event) -> Event:
    return event


def _pieces(stream: str, data: dict[str, Any]) -> list[Piece]:
    raw = as_bytes(data)
    sizes, times = data.get("sizes"), data.get("at_ns") or [0]
    if not isinstance(sizes, list) or sum(sizes) != len(raw):
        return [Piece(stream=stream, data=raw, at_ns=int(times[0]))]
    pieces: list[Piece] = []
    at = 0
    for index, size in enumerate(sizes):
        pieces.append(
            Piece(
                stream=stream,
                data=raw[at : at + size],
                at_ns=int(times[min(index, len(times) - 1)]),
            )
        )
        at += size
    return pieces
