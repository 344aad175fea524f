"""Compare the watched stores of a run and its replay: their mutations, and their content at the end. Pure.

Knows state calls and snapshots; does not know verdicts.
"""

from __future__ import annotations

from typing import Any

from playhead import events
from playhead.events import Event
from playhead.replay.matching.nearest import differences
from playhead.replay.matching.taped import TapedCall, TapedRun
from playhead.tape.reader import Tape


def compared(original: Tape, replayed: Tape, then: TapedRun, now: TapedRun) -> dict[str, Any]:
    """Return `same` (None: nothing was watched) and the first difference."""
    state = _state(then, now)
    if state["first_difference"] is None and (ended := _final_states(original, replayed)):
        return {"same": False, "first_difference": ended}
    return state


def _state(then: TapedRun, now: TapedRun) -> dict[str, Any]:
    """Return the mutations of watched stores, in order and by lane: the request and the result of each."""
    before, after = _mutations(then), _mutations(now, {call.ref: call for call in then.calls})
    if not before and not after:
        return {"same": None, "first_difference": None}
    for index in range(max(len(before), len(after))):
        left = before[index] if index < len(before) else None
        right = after[index] if index < len(after) else None
        if left != right:
            return {"same": False, "first_difference": f"mutation {index + 1}: {left} → {right}"}
    return {"same": True, "first_difference": None}


def _mutations(
    recording: TapedRun, then: dict[str, TapedCall] | None = None
) -> list[tuple[str, str, str, str]]:
    rows = []
    for call in recording.calls:
        if call.boundary != "state":
            continue
        match = call.event.data.get("match")
        quiet = isinstance(match, dict) and match.get("quiet") and then
        taped = then.get(str(match.get("of")), call) if quiet and then else call
        rows.append((call.lane, call.name, repr(taped.request), repr(_value(taped))))
    # By lane, each lane in its own order: the program does not control how workers interleave.
    return sorted(rows, key=lambda row: row[0])


def _final_states(original: Tape, replayed: Tape) -> str | None:
    """Return how the content of a watched store at the end differs. Database files are compared as files."""
    then, now = _ends(original), _ends(replayed)
    for store, event in then.items():
        again = now.get(store)
        if again is None or again.data.get("behind"):
            continue
        found = differences(
            original.whole(event).data.get("value"), replayed.whole(again).data.get("value")
        )
        if found:
            first = found[0]
            return f"{store} at the end: {first.path}: {first.taped!r} → {first.asked!r}"[:400]
    return None


def _ends(tape: Tape) -> dict[str, Event]:
    """Return the last snapshot of each watched store, if it was taken at the end of its run."""
    return {
        str(event.data.get("store")): event
        for event in tape.events()
        if event.kind == events.SNAPSHOT
        and event.ours
        and event.data.get("when") == "end"
        and not str(event.data.get("store")).startswith("sqlite:")
    }


def _value(call: TapedCall) -> Any:
    return call.outcome.data.get("value") if call.outcome is not None else None
