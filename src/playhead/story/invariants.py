"""Check rules that must hold for every run, whichever prompt or model is used. Pure; knows stories.

Costs are those of a live run: an answer from the tape counts with its recorded cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

from playhead import events
from playhead.recording.chunks import as_bytes
from playhead.story.comparison.compare import results_alike, sides_of
from playhead.story.shape import CallItem, NoteItem, Story
from playhead.story.totals import usages


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariants:
    """Limits, and required or forbidden calls and texts. None and empty: no rule. Tools may be globs."""

    max_steps: int | None = None
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    max_duration_s: float | None = None
    must_call: tuple[str, ...] = ()
    must_not_call: tuple[str, ...] = ()
    in_order: tuple[str, ...] = ()
    must_say: tuple[str, ...] = ()
    must_not_say: tuple[str, ...] = ()
    min_similarity: float | None = None
    no_new_tools: bool = False

    @property
    def empty(self) -> bool:
        return self == Invariants()


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A rule that did not hold. `call` is the number of the call where it broke, where there is one."""

    what: str
    limit: str
    found: str
    call: int | None = None

    def __str__(self) -> str:
        place = f" at call #{self.call}" if self.call is not None else ""
        return f"{self.what}: expected {self.limit}, found {self.found}{place}"


def check(story: Story, original: Story, invariants: Invariants) -> list[Broken]:
    """Return every rule that `story` breaks. `original` is the run that it is compared with."""
    return [broken for rule in _RULES for broken in rule(story, original, invariants)]


def tool_calls(story: Story) -> list[CallItem]:
    return [call for call in story.calls() if _is_tool(call)]


def _is_tool(call: CallItem) -> bool:
    if call.boundary == "mcp":
        return str(call.facts.get("method", "tools/call")) == "tools/call"
    return call.boundary == "tool"


def _steps(story: Story, _: Story, rules: Invariants) -> Iterator[Broken]:
    if rules.max_steps is None:
        return
    steps = sides_of(story)
    if len(steps) > rules.max_steps:
        yield Broken(
            what="max_steps",
            limit=f"at most {rules.max_steps}",
            found=str(len(steps)),
            call=steps[rules.max_steps].number,
        )


def _cost(story: Story, original: Story, rules: Invariants) -> Iterator[Broken]:
    if rules.max_cost_usd is None:
        return
    limit = Decimal(str(rules.max_cost_usd))
    spent, at = _summed(story, lambda call: _would_cost(call, original), limit)
    if at is not None:
        yield Broken(what="max_cost_usd", limit=f"at most ${limit}", found=f"${spent:.6f}", call=at)


def _would_cost(call: CallItem, original: Story) -> Decimal:
    match = call.facts.get("match")
    if isinstance(match, dict) and "of" in match:
        then = original.items.get(str(match["of"]))
        cost = then.cost if isinstance(then, CallItem) else None
    else:
        cost = call.cost
    return Decimal(0) if cost is None else cost.usd


def _tokens(story: Story, _: Story, rules: Invariants) -> Iterator[Broken]:
    if rules.max_tokens is None:
        return
    used, at = _summed(story, _tokens_of, Decimal(rules.max_tokens))
    if at is not None:
        yield Broken(
            what="max_tokens", limit=f"at most {rules.max_tokens}", found=f"{used:f}", call=at
        )


def _tokens_of(call: CallItem) -> Decimal:
    return Decimal(sum((one.input_tokens or 0) + (one.output_tokens or 0) for one in usages(call)))


def _summed(
    story: Story, amount: Callable[[CallItem], Decimal], limit: Decimal
) -> tuple[Decimal, int | None]:
    """Return the sum over all calls, and the call that exceeded the limit."""
    total, at = Decimal(0), None
    for call in story.calls():
        total += amount(call)
        if at is None and total > limit:
            at = call.number
    return total, at


def _duration(story: Story, _: Story, rules: Invariants) -> Iterator[Broken]:
    limit = rules.max_duration_s
    if limit is None or story.duration_ns <= limit * 1e9:
        return
    began = min((item.mono for item in story.items.values()), default=0)
    late = (one.number for one in story.calls() if one.mono - began > limit * 1e9)
    yield Broken(
        what="max_duration_s",
        limit=f"at most {limit:g} s",
        found=f"{story.duration_ns / 1e9:.3f} s",
        call=next(late, None),
    )


def _must_call(story: Story, _: Story, rules: Invariants) -> Iterator[Broken]:
    called = [call.name for call in tool_calls(story)]
    for wanted in rules.must_call:
        if not any(fnmatchcase(name, wanted) for name in called):
            yield Broken(what="must_call", limit=wanted, found=_listed(called))


def _must_not_call(story: Story, _: Story, rules: Invariants) -> Iterator[Broken]:
    calls = tool_calls(story)
    for banned in rules.must_not_call:
        first = next((call for call in calls if fnmatchcase(call.name, banned)), None)
        if first is not None:
            yield Broken(
                what="must_not_call", limit=f"no {banned}", found=first.name, call=first.number
            )


def _in_order(story: Story, _: Story, rules: Invariants) -> Iterator[Broken]:
    """Return whether the calls occur in this order; other calls may be between them."""
    if not rules.in_order:
        return
    calls = tool_calls(story)
    place, last = 0, None
    for call in calls:
        if place < len(rules.in_order) and fnmatchcase(call.name, rules.in_order[place]):
            place, last = place + 1, call.number
    if place < len(rules.in_order):
        yield Broken(
            what="in_order",
            limit=" → ".join(rules.in_order),
            found=f"{_listed([one.name for one in calls])} (no {rules.in_order[place]} in this order)",
            call=last,
        )


def _must_say(story: Story, _: Story, rules: Invariants) -> Iterator[Broken]:
    if not rules.must_say:
        return
    uttered = list(_uttered(story))
    for wanted in rules.must_say:
        if not any(wanted in text for text, _ in uttered):
            yield Broken(what="must_say", limit=repr(wanted), found="no such text")


def _must_not_say(story: Story, _: Story, rules: Invariants) -> Iterator[Broken]:
    if not rules.must_not_say:
        return
    uttered = list(_uttered(story))
    for banned in rules.must_not_say:
        hit = next(((text, at) for text, at in uttered if banned in text), None)
        if hit is not None:
            yield Broken(
                what="must_not_say",
                limit=f"no {banned!r}",
                found=_around(hit[0], banned),
                call=hit[1],
            )


def _uttered(story: Story) -> Iterator[tuple[str, int | None]]:
    """Yield the texts to search: answers of the model, arguments of tools, output of the program."""
    printed: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
    for item in story.items.values():
        if isinstance(item, CallItem):
            yield from ((text, item.number) for text in _said(item))
        elif isinstance(item, NoteItem) and item.kind == events.OUTPUT:
            data = item.data if isinstance(item.data, dict) else {}
            printed.setdefault(str(data.get("stream")), []).append(as_bytes(data))
    for pieces in printed.values():
        yield b"".join(pieces).decode("utf-8", "replace"), None


def _said(call: CallItem) -> Iterator[str]:
    for exchange in call.llm:
        if exchange.response is not None:
            yield exchange.response.text
    if _is_tool(call) and isinstance(call.request, dict):
        yield from _texts(call.request.get("arguments"))


def _texts(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            stack.extend(one.values())
        elif isinstance(one, list):
            stack.extend(one)


def _similarity(story: Story, original: Story, rules: Invariants) -> Iterator[Broken]:
    if rules.min_similarity is None:
        return
    ours = sides_of(story)
    found = results_alike(sides_of(original), ours)
    if found is None or found < rules.min_similarity:
        answers = [side.number for side in ours if side.boundary == "llm"]
        yield Broken(
            what="min_similarity",
            limit=f"at least {rules.min_similarity:g}",
            found="no answer of a model in both runs" if found is None else f"{found:.4f}",
            call=answers[-1] if answers else None,
        )


def _new_tools(story: Story, original: Story, rules: Invariants) -> Iterator[Broken]:
    if not rules.no_new_tools:
        return
    known = {call.name for call in tool_calls(original)}
    for call in tool_calls(story):
        if call.name not in known:
            known.add(call.name)
            yield Broken(
                what="no_new_tools",
                limit="only tools of the recorded run",
                found=call.name,
                call=call.number,
            )


def _listed(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "no tool"


def _around(text: str, hit: str) -> str:
    """Return the match with a little text on both sides."""
    at = text.index(hit)
    start, end = max(0, at - 20), at + len(hit) + 20
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"


_RULES = (
    _steps,
    _cost,
    _tokens,
    _duration,
    _must_call,
    _must_not_call,
    _in_order,
    _must_say,
    _must_not_say,
    _similarity,
    _new_tools,
)
