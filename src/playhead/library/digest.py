"""Compute the catalogue's record of a tape: a summary, sums of its calls, and its searchable text.

Pure, but for reading the tape. Knows the story; does not know the database.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead import events
from playhead.errors import PlayheadError
from playhead.library.fulltext import SCOPES, Scope
from playhead.library.run_rows import Summary, comments_of, note_of, plain
from playhead.llm import LlmExchange, Part, Refusal, Text, Thinking, ToolResult, ToolUse
from playhead.story import CallItem, Failure, NoteItem, Prices, Story, TurnItem, tell
from playhead.story.totals import usages
from playhead.tape.reader import Tape

# Eight buckets an octave: a percentile read from them is within 5 % of the real one.
_AN_OCTAVE = 8
# The bucket of a call that never ended: the call is counted, but its time is not.
ENDLESS = -1
_LONGEST_NAME = 200


@dataclass(slots=True, kw_only=True)
class CallSum:
    """The sums of calls with the same name and about the same duration. None: unknown."""

    calls: int = 0
    failures: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


# The kind of what was called (a model, a tool), its name, and the bucket of its duration.
Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The catalogue's record of a tape. Empty if the tape cannot be read: the run is listed all the same."""

    summary: Summary = field(default_factory=Summary)
    calls: Mapping[Key, CallSum] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


# Maximum number of events to read of a run that is not completely on this disk.
_FIRST_EVENTS = 4_000


def digest(tape: Tape, prices: Prices | None = None) -> Digest:
    try:
        # A run in a shared store is not fetched for the catalogue; its beginning gives name and models.
        story = tell(tape, prices=prices, first=_FIRST_EVENTS if tape.is_partial else None)
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
    """Return the duration that this bucket stands for."""
    return float((2 ** (number / _AN_OCTAVE) - 1) / 1e9)


def _named(call: CallItem) -> Iterator[tuple[str, str]]:
    """Yield the kind and name of what was called. A call that used several models counts once for each."""
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


def summarise(run: Path, *, prices: Prices | None = None) -> Summary:
    """Summarise a run. The summary is empty if the tape cannot be read: a list still shows the other runs, and
    `show` and `verify` report the error.
    """
    try:
        return of_story(tell(Tape(run), prices=prices))
    except PlayheadError:
        return Summary()


def of_story(story: Story) -> Summary:
    totals = story.totals
    return Summary(
        events=totals.events,
        calls=totals.calls,
        llm_calls=totals.llm_calls,
        tool_calls=totals.tool_calls,
        failures=totals.failures,
        failed_turns=totals.failed_turns,
        emitted=totals.emitted,
        tokens=totals.tokens,
        input_tokens=totals.input_tokens,
        output_tokens=totals.output_tokens,
        cost_usd=totals.cost_usd,
        unpriced=totals.unpriced,
        lost=totals.lost,
        holes=totals.holes,
        failure=f"{story.failure.type}: {story.failure.message}" if story.failure else None,
        last_seam=story.last_seam,
        duration_s=round(story.duration_ns / 1e9, 6),
    )


LONGEST = 128 * 1024
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]+")
_DEEPEST = 12


class _Pages:
    """Collects the text of each scope."""

    def __init__(self) -> None:
        self._pages: dict[Scope, list[str]] = {scope: [] for scope in SCOPES}
        self._room: dict[Scope, int] = dict.fromkeys(SCOPES, LONGEST)
        self._seen: set[int] = set()

    def add(self, scope: Scope, text: str) -> None:
        room = self._room[scope]
        if room <= 0 or not text:
            return
        mark = hash((scope, text))
        if mark in self._seen:
            return
        self._seen.add(mark)
        self._pages[scope].append(text[:room])
        self._room[scope] = room - len(text) - 1

    def put(self, scope: Scope, value: Any) -> None:
        """Add the words of any value that a tape can hold."""
        if value is not None and self._room[scope] > 0:
            self.add(scope, " ".join(_words(value)))

    def texts(self) -> dict[str, str]:
        return {scope: clean("\n".join(page)) for scope, page in self._pages.items()}


def texts_of(story: Story) -> dict[str, str]:
    """Return one text for each scope, in a form that a database accepts."""
    pages = _Pages()
    _about(story, pages)
    for item in story.items.values():
        if isinstance(item, CallItem):
            _call(item, pages)
        elif isinstance(item, TurnItem):
            pages.add("about", f"{item.name} {item.purpose or ''}")
            pages.put("prompt", item.input)
            pages.put("prompt", item.context)
            pages.put("response", item.value)
            pages.put("response", item.reason)
            _failure(item.failure, pages)
        else:
            _note(item, pages)
    _failure(story.failure, pages)
    return pages.texts()


def clean(text: str) -> str:
    """Remove control characters and halves of surrogate pairs."""
    if _CONTROL.search(text):
        text = _CONTROL.sub(" ", text)
    return plain(text)


def _about(story: Story, pages: _Pages) -> None:
    manifest = story.manifest
    pages.add("about", manifest.name)
    pages.put("about", manifest.command)
    pages.put("about", manifest.tags)
    pages.add("about", note_of(manifest))
    for one in comments_of(manifest):
        pages.add("about", f"{one['by']}: {one['text']}")


def _call(call: CallItem, pages: _Pages) -> None:
    for exchange in call.llm:
        _exchange(exchange, pages)
    if not call.llm:
        request = call.request if isinstance(call.request, dict) else {}
        pages.add("tool", call.name)
        pages.put("tool", request.get("arguments") or request.get("url") or request.get("argv"))
        pages.put("tool", call.facts.get("command"))
        pages.put("tool", call.value)
    _failure(call.failure, pages)


def _exchange(exchange: LlmExchange, pages: _Pages) -> None:
    request, response = exchange.request, exchange.response
    pages.add("prompt", request.system or "")
    for message in request.messages:
        scope: Scope = "response" if message.role == "assistant" else "prompt"
        for part in message.parts:
            _part(part, scope, pages)
    for part in response.parts if response is not None else ():
        _part(part, "response", pages)


def _part(part: Part, scope: Scope, pages: _Pages) -> None:
    if isinstance(part, (Text, Refusal, Thinking)):
        pages.add(scope, part.text)
    elif isinstance(part, ToolUse):
        pages.add("tool", part.name or "")
        pages.put("tool", part.arguments)
    elif isinstance(part, ToolResult):
        for inner in part.content:
            _part(inner, "tool", pages)


def _note(note: NoteItem, pages: _Pages) -> None:
    if note.kind == events.OUTPUT:
        text = note.data.get("text") if isinstance(note.data, dict) else None
        pages.put("response", text)
    elif events.kind_of(note.kind).searchable:
        pages.add("tool", note.kind)
        pages.put("tool", note.data)


def _failure(failure: Failure | None, pages: _Pages) -> None:
    if failure is not None:
        pages.add("error", f"{failure.type}: {failure.message}")


def _words(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:LONGEST]
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, (int, float)):
        yield str(value)
    elif depth < _DEEPEST:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key == "b64":
                    continue
                yield str(key)
                yield from _words(inner, depth + 1)
        elif isinstance(value, (list, tuple)):
            for inner in value:
                yield from _words(inner, depth + 1)
