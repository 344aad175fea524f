"""Compare two runs side by side: totals, and the trajectory step by step. Pure; knows stories, not views."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from playhead.story.agent_output import REPORTED_BY
from playhead.story.comparison.align import align, alike
from playhead.story.derived_tools import DERIVED
from playhead.story.shape import CallItem, Story
from playhead.story.start_up import is_start_up

Kind = Literal["same", "changed", "added", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One step of one run, as text."""

    number: int
    boundary: str
    name: str
    asked: str
    answered: str
    took_ns: int | None
    cost_usd: float | None
    rung: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A place in the two trajectories. `similarity` is that of the answers, 0 to 1."""

    kind: Kind
    left: Side | None
    right: Side | None
    similarity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number of both runs; None: unknown."""

    name: str
    left: float | None
    right: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The differences between two runs."""

    left: str
    right: str
    figures: tuple[Figure, ...]
    steps: tuple[Step, ...]
    result_similarity: float | None

    @property
    def same(self) -> bool:
        return all(step.kind == "same" for step in self.steps)

    @property
    def first_difference(self) -> int | None:
        """Return the index of the first step that differs, to which `--bisect` points."""
        return next((index for index, step in enumerate(self.steps) if step.kind != "same"), None)


def compare(left: Story, right: Story) -> Comparison:
    ours, theirs = sides_of(left), sides_of(right)
    return Comparison(
        left=left.manifest.run,
        right=right.manifest.run,
        figures=_figures(left, right),
        steps=tuple(_aligned(ours, theirs)),
        result_similarity=results_alike(ours, theirs),
    )


def sides_of(story: Story) -> list[Side]:
    """Return the calls that the agent made itself, without the calls inside its tools and of libraries at start-up."""
    # A derived tool call is part of the response that asked for it, and that response is compared itself.
    calls = [call for call in story.calls() if DERIVED not in call.facts and not is_start_up(call)]
    inner = {call.ref for call in calls if _enclosed(story, call)}
    return [_side(call) for call in calls if call.ref not in inner]


def _enclosed(story: Story, call: CallItem) -> bool:
    ref = call.parent
    seen: set[str] = set()
    while ref is not None and ref not in seen:
        seen.add(ref)
        above = story.items.get(ref)
        if isinstance(above, CallItem) and not above.llm and not _speaks(above, call):
            return True
        ref = above.parent if above is not None else None
    return False


def _speaks(above: CallItem, call: CallItem) -> bool:
    """Return whether the call was reported by the agent process that encloses it."""
    return REPORTED_BY in call.facts and above.boundary == "process"


def _side(call: CallItem) -> Side:
    match = call.facts.get("match")
    return Side(
        number=call.number,
        boundary=call.boundary,
        name=_model(call) if call.llm else call.name,
        asked=_asked(call),
        answered=_answered(call),
        took_ns=call.took_ns,
        cost_usd=None if call.cost is None else float(call.cost.usd),
        rung=str(match.get("rung")) if isinstance(match, dict) else None,
    )


def _model(call: CallItem) -> str:
    names = [
        one.request.model or (one.response.model if one.response else None) for one in call.llm
    ]
    return next((name for name in names if name), call.name)


def _asked(call: CallItem) -> str:
    if call.llm:
        request = call.llm[-1].request
        last = request.messages[-1].text if request.messages else ""
        return f"{request.system or ''}\n{last}".strip()
    request = call.request
    if isinstance(request, dict) and "arguments" in request:
        return _text(request["arguments"])
    return _text(request)


def _answered(call: CallItem) -> str:
    if call.failure is not None:
        return f"{call.failure.type}: {call.failure.message}"
    if call.llm:
        response = call.llm[-1].response
        if response is None:
            return ""
        tools = [f"→ {use.name}({_text(use.arguments)})" for use in response.tool_calls]
        return "\n".join([response.text, *tools]).strip()
    if call.value is not None:
        return _text(_without_times(call.value) if call.boundary == "state" else call.value)
    streams = [piece.data for piece in call.pieces if piece.stream in ("body", "stdout")]
    return b"".join(streams).decode("utf-8", "replace")


def _without_times(value: Any) -> Any:
    """Remove the duration from the status of an iteration: it is never the same twice."""
    if not isinstance(value, dict):
        return value
    return {name: item for name, item in value.items() if name != "took_ns"}


def _text(value: Any) -> str:
    return (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    )


def _aligned(left: list[Side], right: list[Side]) -> list[Step]:
    """Align by boundary and name. Steps with a partner are the same or changed; the others are added or removed."""
    pairs = align(
        [_whole(side) for side in left],
        [_whole(side) for side in right],
        [_kind(side) for side in left],
        [_kind(side) for side in right],
    )
    return [
        _step(None if i is None else left[i], None if j is None else right[j]) for i, j in pairs
    ]


def _whole(side: Side) -> tuple[str, str, str, str]:
    return side.boundary, side.name, side.asked, side.answered


def _kind(side: Side) -> tuple[str, str]:
    """Return the kind of a step. A different model is a change of the step; a different tool is a different step."""
    return side.boundary, "" if side.boundary == "llm" else side.name


def _step(left: Side | None, right: Side | None) -> Step:
    if left is None or right is None:
        return Step(kind="added" if left is None else "removed", left=left, right=right)
    same = _whole(left) == _whole(right)
    score = alike(left.answered, right.answered)
    return Step(
        kind="same" if same else "changed", left=left, right=right, similarity=round(score, 4)
    )


def results_alike(left: list[Side], right: list[Side]) -> float | None:
    """Return how similar the last texts of the model are in both runs; None: one run has none."""
    ours, theirs = result_of(left), result_of(right)
    return None if ours is None or theirs is None else round(alike(ours, theirs), 4)


def result_of(sides: list[Side]) -> str | None:
    return next((side.answered for side in reversed(sides) if side.boundary == "llm"), None)


def _figures(left: Story, right: Story) -> tuple[Figure, ...]:
    def pair(name: str, ours: float | None, theirs: float | None) -> Figure:
        return Figure(name=name, left=ours, right=theirs)

    rungs = [_rungs(left), _rungs(right)]
    return (
        pair("duration_s", left.duration_ns / 1e9, right.duration_ns / 1e9),
        pair("cost_usd", left.totals.cost_usd, right.totals.cost_usd),
        pair("tokens", left.totals.tokens, right.totals.tokens),
        pair("llm_calls", left.totals.llm_calls, right.totals.llm_calls),
        pair("tool_calls", left.totals.tool_calls, right.totals.tool_calls),
        *(
            pair(f"tools_{name}", rungs[0][name], rungs[1][name])
            for name in ("taped", "live", "blocked")
        ),
        pair("failures", left.totals.failures, right.totals.failures),
    )


def _rungs(story: Story) -> dict[str, int]:
    counts = {"taped": 0, "live": 0, "blocked": 0}
    for call in story.calls():
        if call.boundary not in ("tool", "mcp"):
            continue
        match = call.facts.get("match")
        rung = match.get("rung") if isinstance(match, dict) else None
        counts["live" if rung is None else "blocked" if rung == "blocked" else "taped"] += 1
    return counts
