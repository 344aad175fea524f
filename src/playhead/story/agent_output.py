"""What agents said of themselves on a program's stdout, as events beside those of the tape. Pure; knows
process calls and output, and when not to listen: where the exchanges themselves are on the tape.

Told when a run is read and not when it is recorded: on the tape they would be calls that nobody makes in
a replay, and a better reader is of use for the tapes of yesterday.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from playhead import events
from playhead.events import Event
from playhead.recording.chunks import as_bytes
from playhead.transcripts import AgentStream, SessionStarted
from playhead.transcripts.transcript_events import Draft, drafts_of

# A member of the calls that were overheard: by whom.
TOLD_BY = "told_by"


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """One stream of output. `call` printed it; None: the program itself."""

    call: Event | None
    # With their places on the tape.
    heard: Sequence[tuple[Event, int]]
    until: int | None


def overhear(
    voices: Iterable[Voice], llm: Sequence[Event], first: Event | None
) -> Iterator[tuple[Event, int]]:
    """Events and their places. `llm` are the calls whose exchanges are on the tape."""
    known: set[str] = set()
    for voice in voices:
        if not voice.heard or _is_recorded(voice, llm):
            continue
        stream = _followed(voice)
        steps = stream.close()
        session = next((one.session for one in steps if isinstance(one, SessionStarted)), None)
        if not steps or session in known:  # a program that prints what its child said
            continue
        if session is not None:
            known.add(session)
        began = voice.call or first or voice.heard[0][0]
        drafts = drafts_of(steps, started=began.wall)
        for number, draft in enumerate(drafts):
            place = _place(voice.heard, draft)
            yield _event(number, draft, began, voice.call, stream.tool), place


def _is_recorded(voice: Voice, llm: Sequence[Event]) -> bool:
    if voice.call is None:
        return bool(llm)
    until = voice.until
    return any(voice.call.wall <= one.wall and (until is None or one.wall <= until) for one in llm)


def _followed(voice: Voice) -> AgentStream:
    stream = AgentStream()
    for event, _ in voice.heard:
        data = event.data if isinstance(event.data, dict) else {}
        try:
            stream.feed(as_bytes(data), event.wall)
        except (TypeError, ValueError):
            continue  # a level below full, an edited tape
    return stream


def _place(heard: Sequence[tuple[Event, int]], draft: Draft) -> int:
    """That of the piece of output in which it was said."""
    chosen = heard[0][1]
    for event, place in heard:
        if event.wall > draft.wall:
            break
        chosen = place
    return chosen


def _event(number: int, draft: Draft, began: Event, call: Event | None, tool: str | None) -> Event:
    data: Any = draft.data
    if draft.kind == events.CALL:
        data = {**data, TOLD_BY: tool}
    above = None if call is None else call.ref
    name = "output" if call is None else f"{call.segment}-{call.seq}"
    return Event(
        seq=number,
        kind=draft.kind,
        wall=draft.wall,
        mono=began.mono + draft.wall - began.wall,
        pid=began.pid,
        lane=began.lane if draft.lane == "main" else f"{began.lane}{draft.lane[4:]}",
        who=tool,
        parent=above if draft.parent is None else draft.parent,
        cause=draft.cause,
        seg=f"said-{name}",
        data=data,
    )
