"""Sums over a run: calls, tokens, cost. Pure; unknown stays unknown and is never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from playhead import events
from playhead.llm import LlmExchange, Usage
from playhead.story.derived_tools import DERIVED
from playhead.story.prices import Cost, cost_of
from playhead.story.shape import CallItem, Item, NoteItem, Totals, TurnItem
from playhead.story.start_up import is_start_up
from playhead.transcripts.transcript_events import RESULT

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
# The cost of an answer from a tape.
NOTHING = Cost(usd=Decimal(0), source="answered from a tape")

# The last day of the year 9999: a tape may contain any number.
_LATEST_S = 253_402_200_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The user's own prices (`[prices]` in the config) over the known ones."""

    overrides: Mapping[str, Any] = field(default_factory=dict)

    def of(self, exchanges: tuple[LlmExchange, ...], wall: int) -> Cost | None:
        """Return the cost of these exchanges; None if one of them has no known price."""
        seconds = max(0.0, min(wall / 1e9, _LATEST_S))
        when = datetime.fromtimestamp(seconds, timezone.utc)
        costs: list[Cost] = []
        for exchange in exchanges:
            response = exchange.response
            if response is None or response.usage is None:
                continue
            model = response.model or exchange.request.model
            cost = cost_of(response.api, model, response.usage, when, self.overrides)
            if cost is None:
                return None
            costs.append(cost)
        if not costs:
            return None
        return Cost(usd=sum((cost.usd for cost in costs), Decimal(0)), source=costs[0].source)


def usages(call: CallItem) -> list[Usage]:
    found = (exchange.response.usage for exchange in call.llm if exchange.response is not None)
    return [usage for usage in found if usage is not None]


def total(items: Iterable[Item], *, events: int, lost: int) -> Totals:
    counts = {
        "calls": 0,
        "llm": 0,
        "tool": 0,
        "process": 0,
        "http": 0,
        "failures": 0,
        "failed_turns": 0,
        "emitted": 0,
        "unpriced": 0,
        "holes": 0,
    }
    tokens: dict[str, int | None] = {}
    cost: Decimal | None = None
    for item in items:
        if said := _said(item):
            for name in TOKENS:
                if type(more := said.get(name)) is int:
                    tokens[name] = (tokens.get(name) or 0) + more
            if isinstance(claimed := said.get("cost_usd"), (int, float)):
                cost = (cost or Decimal(0)) + Decimal(str(claimed))
        if isinstance(item, NoteItem):
            counts["holes"] += item.kind == _HOLE
            counts["emitted"] += item.kind not in _KINDS and item.kind != _START_UP
        if isinstance(item, TurnItem):
            counts["failed_turns"] += item.how == "raised"
        if not isinstance(item, CallItem) or is_start_up(item):
            continue
        # A derived tool is no crossing of a boundary of its own.
        counts["calls"] += DERIVED not in item.facts
        kind = (
            "tool"
            if item.boundary == "mcp" and item.facts.get("method", "tools/call") == "tools/call"
            else item.boundary
        )
        if kind in counts:
            counts[kind] += 1
        counts["failures"] += item.failure is not None
        for usage in usages(item):
            for name in TOKENS:
                more = getattr(usage, name)
                if more is not None:
                    tokens[name] = (tokens.get(name) or 0) + more
        if item.cost is not None:
            cost = (cost or Decimal(0)) + item.cost.usd
        elif usages(item):
            counts["unpriced"] += 1
    return Totals(
        events=events,
        calls=counts["calls"],
        llm_calls=counts["llm"],
        tool_calls=counts["tool"],
        process_calls=counts["process"],
        http_calls=counts["http"],
        failures=counts["failures"],
        failed_turns=counts["failed_turns"],
        emitted=counts["emitted"],
        unpriced=counts["unpriced"],
        holes=counts["holes"],
        lost=lost,
        cost_usd=None if cost is None else float(cost),
        **tokens,
    )


def spent(items: Iterable[Item]) -> tuple[Decimal, int]:
    """Return the price of the calls that were live in a replay, and how many of them have no known price."""
    usd, unpriced = Decimal(0), 0
    for item in items:
        if not isinstance(item, CallItem):
            continue
        match = item.facts.get("match")
        if isinstance(match, dict) and "of" in match:
            continue  # answered from the tape
        if item.cost is not None:
            usd += item.cost.usd
        elif usages(item):
            unpriced += 1
        if isinstance(claimed := _said(item).get("cost_usd"), (int, float)):
            usd += Decimal(str(claimed))
    return usd, unpriced


def _said(item: Item) -> Mapping[str, Any]:
    """Return the usage that an agent reports itself: in its result, or in the outcome of its process."""
    if isinstance(item, NoteItem) and item.kind == RESULT and isinstance(item.data, dict):
        usage = item.data.get("usage")
        cost = {"cost_usd": item.data.get("cost_usd")}
        return {**usage, **cost} if isinstance(usage, dict) else cost
    if isinstance(item, CallItem) and item.boundary == "process":
        usage = item.outcome.get("usage")
        return usage if isinstance(usage, dict) else {}
    return {}


_HOLE, _KINDS, _START_UP = events.HOLE, events.KINDS, events.START_UP
