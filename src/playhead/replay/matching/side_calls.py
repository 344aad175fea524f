"""Side traffic, such as telemetry: calls that are not the agent's work and never fail a replay. Pure."""

from __future__ import annotations

from typing import Any

from playhead.recording.calls import Call, Taped
from playhead.replay.matching.taped import TapedCall, TapedRun, answer_of

# The fact of a call that says what kind of side traffic it is.
SIDE = "side"


def is_side(call: TapedCall) -> bool:
    return bool(call.event.data.get(SIDE))


def answer_side_call(recording: TapedRun, call: Call, name: str) -> Taped | None:
    """For side traffic that the tape does not have as it is asked now: what was answered to its like
    then, or nothing at all. None: this call is the agent's work.
    """
    kind = call.facts.get(SIDE)
    if not kind:
        return None
    found: dict[str, Any] = {"rung": SIDE}
    for taped in recording.calls:
        alike = taped.boundary == call.boundary and taped.name == name and is_side(taped)
        if alike and taped.outcome is not None:
            found["of"] = taped.ref
            return answer_of(recording.tape, taped, match=found)
    return Taped(how="returned", match=found)
