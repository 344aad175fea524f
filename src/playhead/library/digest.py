"""What the catalogue keeps of a tape: a summary, its calls summed up, its words. Knows the model; not
where digests are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from playhead.errors import PlayheadError
from playhead.library.summarise import of_story
from playhead.library.summary import Summary
from playhead.library.texts import clean, texts_of
from playhead.story import CallItem, Prices, Story, tell
from playhead.story.totals import usages
from playhead.tape.reader import Tape

# Eight buckets an octave: a percentile read from them is within 5 % of the real one.
_AN_OCTAVE = 8
# Of a call that never ended: it counts as one, but not among the times.
ENDLESS = -1
_LONGEST_NAME = 200


@dataclass(slots=True, kw_only=True)
class CallSum:
    """Calls of one thing that took about as long as each other. None: unknown."""

    calls: int = 0
    failures: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


# What kind of thing was called (a model, a tool), its name, and the bucket of its time.
Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """Empty where a tape cannot be read: the run is there all the same."""

    summary: Summary = field(default_factory=Summary)
    calls: Mapping[Key, CallSum] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def digest(tape: Tape, prices: Prices | None = None) -> Digest:
    try:
        story = tell(tape, prices=prices)
    except PlayheadError:
        return Digest()
    return Digest(summary=of_story(story), calls=sums_of(story), texts=texts_of(story))


def sums_of(story: Story) -> dict[Key, CallSum]:
    found: dict[Key, CallSum] = {}
    for item in story.items.values():
        if not isinstance(item, CallItem):
            continue
        for kind, name in _named(item):
            key = (kind, clean(name)[:_LONGEST_NAME], bucket(item.took_ns))
            _add(found.setdefault(key, CallSum()), item)
    return found


def bucket(took_ns: int | None) -> int:
    if not isinstance(took_ns, int) or took_ns < 0:
        return ENDLESS
    return round(math.log2(took_ns + 1) * _AN_OCTAVE)


def seconds_in(number: int) -> float:
    """What a call in this bucket took."""
    return float((2 ** (number / _AN_OCTAVE) - 1) / 1e9)


def _named(call: CallItem) -> Iterator[tuple[str, str]]:
    """What was called: a model, a tool. A call that asked several models is one of each."""
    if call.boundary == "llm":
        models = {
            (exchange.response.model if exchange.response else None) or exchange.request.model
            for exchange in call.llm
        }
        yield from (("model", model) for model in models or {None} if model)
    elif call.boundary == "tool" or (
        call.boundary == "mcp" and call.facts.get("method", "tools/call") == "tools/call"
    ):
        yield "tool", call.name


def _add(into: CallSum, call: CallItem) -> None:
    into.calls += 1
    into.failures += call.failure is not None
    for usage in usages(call):
        if usage.input_tokens is not None:
            into.input_tokens = (into.input_tokens or 0) + usage.input_tokens
        if usage.output_tokens is not None:
            into.output_tokens = (into.output_tokens or 0) + usage.output_tokens
    if call.cost is not None:
        into.cost_usd = (into.cost_usd or 0.0) + float(call.cost.usd)
