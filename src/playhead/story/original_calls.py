"""Read the calls that a replay's tape leaves out from the tape of the original run.

A replayed call whose answer was exactly the taped one is written without request and answer: both are
on the original tape.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from itertools import islice
from typing import Any

from playhead import events
from playhead.errors import PlayheadError
from playhead.event import brought_along
from playhead.events import Event
from playhead.tape.reader import Tape


@dataclasses.dataclass(slots=True)
class OriginalCall:
    """A call of the original run: its event, its outcome, its chunks."""

    call: Event | None = None
    outcome: Event | None = None
    pieces: list[Event] = dataclasses.field(default_factory=list)


# A replay that answers exactly has fewer events on its tape than the original run.
_AHEAD = 8


def read_original_calls(
    tape: Tape, quiet: Iterable[str], original: Tape | None = None, first: int | None = None
) -> dict[str, OriginalCall]:
    """Return the original events for these refs; empty if the original is missing.

    `first`: only this many events of the replay are read, so the search in the original is limited, too.
    """
    wanted = {ref: OriginalCall() for ref in quiet}
    of = tape.manifest.replay_of
    if not wanted or not of:
        return {}
    if original is None:
        if not (tape.run.parent / of).is_dir():
            return {}
        original = Tape(tape.run.parent / of)
    try:
        for event in islice(original.events(), None if first is None else first * _AHEAD):
            if event.kind == events.CALL and event.ref in wanted:
                wanted[event.ref].call = original.whole(event)
            elif event.kind in (events.CHUNK, events.OUTCOME) and isinstance(event.data, dict):
                found = wanted.get(event.absolute(event.data.get("call")) or "")
                if found is not None and event.kind == events.CHUNK:
                    found.pieces.append(original.whole(event))
                elif found is not None:
                    found.outcome = original.whole(event)
                    found.pieces += brought_along(found.outcome)
    except PlayheadError:
        return {}  # the original is damaged: the story shows what is on the replay's tape
    return wanted


def left_out_ref(data: Any) -> str | None:
    """Return the ref of the original call whose contents this event leaves out, if it does."""
    match = data.get("match") if isinstance(data, dict) else None
    if not isinstance(match, dict) or not match.get("quiet"):
        return None
    return str(match.get("of"))
