"""Find the events that coding agents report on stdout (JSON streams of Claude Code, Codex, Gemini). Pure.

Knows process calls and output. Skips output of programs whose LLM exchanges are on the tape themselves. Runs when a
tape is read, not when it is recorded: on the tape these events would be calls that a replay never makes, and a
better parser then also helps with old tapes.
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

# Member of a reported call that names the tool which reported it.
REPORTED_BY = "told_by"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStream:
    """One stream of output. `call` is the process that printed it; None: the recorded program itself."""

    call: Event | None
    # The events, with their places on the tape.
    pieces: Sequence[tuple[Event, int]]
    until: int | None

    def repeats(self, other: OutputStream) -> bool:
        """Return whether this is the output of `other`, printed again: by the program, by a process around it, or by
        another command later (`cat session.jsonl`). An agent that continues its session prints the same session
        id in a later process (`claude --resume`); that is not a repetition.
        """
        mine, first = self.call, other.call
        if mine is None or first is None:
            return True
        if _is_before(mine, other.until) and _is_before(first, self.until):
            return True
        return _program(mine) != _program(first) and self.printed() == other.printed()

    def printed(self) -> bytes:
        return b"".join(_bytes_of(event) for event, _ in self.pieces)


def _program(call: Event) -> object:
    return call.data.get("name") if isinstance(call.data, dict) else None


def _is_before(call: Event, end: int | None) -> bool:
    return end is None or call.wall < end


def reported_events(
    outputs: Iterable[OutputStream], llm: Sequence[Event], first: Event | None
) -> Iterator[tuple[Event, int]]:
    """Yield events with their places on the tape. `llm` are the calls whose exchanges are recorded."""
    known: dict[str, list[OutputStream]] = {}
    for output in outputs:
        if not output.pieces or _is_recorded(output, llm):
            continue
        stream = _followed(output)
        steps = stream.close()
        session = next((one.session for one in steps if isinstance(one, SessionStarted)), None)
        if not steps or any(output.repeats(one) for one in known.get(session or "", ())):
            continue
        if session is not None:
            known.setdefault(session, []).append(output)
        began = output.call or first or output.pieces[0][0]
        drafts = drafts_of(steps, started=began.wall)
        for number, draft in enumerate(drafts):
            place = _place(output.pieces, draft)
            yield _event(number, draft, began, output.call, stream.tool), place


def _is_recorded(output: OutputStream, llm: Sequence[Event]) -> bool:
    if output.call is None:
        return bool(llm)
    until = output.until
    return any(output.call.wall <= one.wall and (until is None or one.wall <= until) for one in llm)


def _followed(output: OutputStream) -> AgentStream:
    stream = AgentStream()
    for event, _ in output.pieces:
        stream.feed(_bytes_of(event), event.wall)
    return stream


def _bytes_of(piece: Event) -> bytes:
    try:
        return as_bytes(piece.data if isinstance(piece.data, dict) else {})
    except (TypeError, ValueError):
        return b""  # recorded below `full`, or an edited tape


def _place(pieces: Sequence[tuple[Event, int]], draft: Draft) -> int:
    """Return the place of the output that contained this event."""
    chosen = pieces[0][1]
    for event, place in pieces:
        if event.wall > draft.wall:
            break
        chosen = place
    return chosen


def _event(number: int, draft: Draft, began: Event, call: Event | None, tool: str | None) -> Event:
    data: Any = draft.data
    if draft.kind == events.CALL:
        data = {**data, REPORTED_BY: tool}
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
