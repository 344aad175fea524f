"""Forecast a replay, call by call of its tape, without running it. Pure.

Knows the policy and the tape; cannot know the requests of changed code.
"""

from __future__ import annotations

from dataclasses import dataclass

from playhead.recording.calls import Call
from playhead.replay.matching.taped import TapedCall, TapedRun
from playhead.replay.modes.replay_options import Policy

_TOOLS = ("tool", "mcp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The forecast for the calls of one name. `answer`: tape or live. `miss`: the result of a call that is not
    on the tape: live, allowed, blocked, ends (the run).
    """

    boundary: str
    name: str
    calls: int
    answer: str
    miss: str
    effect: str | None


def forecast(recording: TapedRun, policy: Policy, *, before: int | None = None) -> list[Forecast]:
    """One row for each boundary and name, in order of appearance. `before`: these calls come from
    the tape whatever the policy says.
    """
    inner = {call.ref for calls in recording.below.values() for call in calls}
    rows: dict[tuple[str, str, str], Forecast] = {}
    for taped in recording.calls:
        if taped.ref in inner:
            continue
        row = _row(taped, policy, before)
        key = (row.boundary, row.name, row.answer)
        counted = rows[key].calls + 1 if key in rows else 1
        rows[key] = Forecast(
            boundary=row.boundary, name=row.name, calls=counted,
            answer=row.answer, miss=row.miss, effect=row.effect,
        )  # fmt: skip
    return list(rows.values())


def _row(taped: TapedCall, policy: Policy, before: int | None) -> Forecast:
    effect = taped.event.data.get("effect")
    call = Call(boundary=taped.boundary, name=taped.name, effect=effect)
    live = policy.is_live(call)
    on_tape = not live or (before is not None and taped.number < before)
    is_tool = taped.boundary in _TOOLS
    return Forecast(
        boundary=taped.boundary,
        name=taped.name,
        calls=1,
        answer="tape" if on_tape else "live",
        miss="live" if live else _miss(call, policy),
        effect=policy.effect_of(call) if is_tool else None,
    )


def _miss(call: Call, policy: Policy) -> str:
    if policy.lets_through(call):
        return "allowed"
    return "blocked" if call.boundary in _TOOLS and not policy.strict else "ends the run"
