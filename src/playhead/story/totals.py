"""Sums over a run: calls, tokens, cost. Pure; unknown stays unknown and is never 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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
    counts: Counter[str] = Counter()
    usage = _Usage()
    for item in items:
        counts.update(_counted(item))
        usage.add(item)
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
        unpriced=usage.unpriced,
        holes=counts["holes"],
        lost=lost,
        cost_usd=None if usage.cost is None else float(usage.cost),
        **usage.tokens,
    )


def _counted(item: Item) -> Iterator[str]:
    """Yield the counts that an item adds one to."""
    if isinstance(item, NoteItem):
        if item.kind == _HOLE:
            yield "holes"
        if item.kind not in _KINDS and item.kind != _START_UP:
            yield "emitted"
    elif isinstance(item, TurnItem):
        if item.how == "raised":
            yield "failed_turns"
    elif not is_start_up(item):
        # A derived tool does not cross a boundary of its own.
        if DERIVED not in item.facts:
            yield "calls"
        method = item.facts.get("method", "tools/call")
        is_mcp_tool = item.boundary == "mcp" and method == "tools/call"
        yield "tool" if is_mcp_tool else item.boundary
        if item.failure is not None:
            yield "failures"


class _Usage:
    """Tokens and prices, as far as they are known: None is unknown, not zero."""

    def __init__(self) -> None:
        self.tokens: dict[str, int | None] = {}
        self.cost: Decimal | None = None
        self.unpriced = 0

    def add(self, item: Item) -> None:
        if said := _said(item):
            for name in TOKENS:
                self._add_tokens(name, said.get(name))
            if isinstance(claimed := said.get("cost_usd"), (int, float)):
                self._add_cost(Decimal(str(claimed)))
        if not isinstance(item, CallItem) or is_start_up(item):
            return
        found = usages(item)
        for usage in found:
            for name in TOKENS:
                self._add_tokens(name, getattr(usage, name))
        if item.cost is not None:
            self._add_cost(item.cost.usd)
        elif found:
            self.unpriced += 1

    def _add_tokens(self, name: str, more: object) -> None:
        if type(more) is int:  # an agent may report any number
            self.tokens[name] = (self.tokens.get(name) or 0) + more

    def _add_cost(self, usd: Decimal) -> None:
        self.cost = (self.cost or Decimal(0)) + usd


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
