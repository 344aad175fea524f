"""Report everything that a replay did besides exact matches: inexact answers, blocked and allowed tools, faults. Pure.

Reads the facts that the modes write on the replay's own tape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playhead import events
from playhead.replay.matching.taped import TapedCall, TapedRun
from playhead.replay.modes.replay_options import ReplayOptions

_TOOLS = ("tool", "mcp")


def inexact(now: TapedRun) -> list[dict[str, Any]]:
    """Return every call that got the answer of a different call, with their similarity."""
    return [
        {
            **_named(call),
            "rung": match["rung"],
            "score": match.get("score", 1.0),
            "of": match.get("number"),
        }
        for call, match in _matched(now)
        if match.get("rung") in ("normalised", "fuzzy")
    ]


def blocked(now: TapedRun) -> list[dict[str, Any]]:
    return [
        {**_named(call), "effect": match.get("effect")}
        for call, match in _matched(now)
        if match.get("rung") == "blocked"
    ]


def allowed(now: TapedRun, wishes: ReplayOptions) -> list[dict[str, Any]]:
    """Return the tools that ran for real because they were allowed to, not because their boundary is live."""
    named = {one for one in wishes.policy.live if ":" not in one}
    return [
        {**_named(call), "effect": call.event.data.get("effect")}
        for call in now.calls
        if call.boundary in _TOOLS and call.boundary not in named and not _match(call)
    ]


def fired(now: TapedRun) -> list[dict[str, Any]]:
    """Return each fault that fired, with the call of the replay."""
    return [
        {**_named(call), "fault": match["fault"], "at": call.event.at}
        for call, match in _matched(now)
        if "fault" in match
    ]


def unchanged(now: TapedRun) -> list[str]:
    """Return why live requests were sent unchanged although they should have been rewritten."""
    holes = (
        event.data
        for event in now.tape.events()
        if event.kind == events.HOLE and event.ours and isinstance(event.data, dict)
    )
    notes = [f"Not rewritten: {one.get('why')}." for one in holes if one.get("what") == "rewrite"]
    return list(dict.fromkeys(notes))


def order(now: TapedRun) -> list[str]:
    """Return where the order of concurrent work first differs from the tape, if a point was skipped."""
    skipped = [
        event.data["skipped"]
        for event in now.tape.events()
        if event.kind == events.ORDER and event.ours and isinstance(event.data.get("skipped"), dict)
    ]
    if not skipped:
        return []
    first = min(skipped, key=lambda one: int(one["step"]))
    lane = (
        f": lane {first['lane']} did not reach its point `{first['point']}`"
        if first["lane"]
        else ""
    )
    return [f"The order differs from the tape at step {first['step']}{lane}."]


def _matched(now: TapedRun) -> Iterator[tuple[TapedCall, dict[str, Any]]]:
    for call in now.calls:
        match = _match(call)
        if match:
            yield call, match


def _match(call: TapedCall) -> dict[str, Any]:
    match = call.event.data.get("match")
    return match if isinstance(match, dict) else {}


def _named(call: TapedCall) -> dict[str, Any]:
    return {"step": call.number, "boundary": call.boundary, "name": call.name}
