"""Everything about one call: the five questions, what was asked, what came back, when each piece came.

Knows a call item; not the tree around it beyond its chain of causes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from playhead.model import CallItem, Story
from playhead.model.totals import usages
from playhead.views.text import words
from playhead.views.text.console import console
from playhead.views.text.labels import label
from playhead.views.text.safe import clean, one_line
from playhead.wire import Image, LlmExchange, Other, Part, Refusal, Text as Words, Thinking, ToolResult, ToolUse

_LONGEST_BODY = 20_000


def print_call(story: Story, call: CallItem, *, full: bool = False) -> None:
    out = console()
    out.print(label(call))
    for heading, text in _five(story, call):
        out.print(Text.assemble((f"{heading:>9}  ", "quiet"), text))
    for title, body in _sections(call):
        out.print()
        out.print(Text(title, style="bold"))
        shown = clean(body)
        if not full and len(shown) > _LONGEST_BODY:
            shown = f"{shown[:_LONGEST_BODY]}\n… {len(shown) - _LONGEST_BODY:,} more characters; --full shows all"
        out.print(Text(shown))


def _five(story: Story, call: CallItem) -> Iterator[tuple[str, str]]:
    yield "who", one_line(f"{call.who or '?'} in lane {call.lane}", 200)
    effect = f", effect {call.effect}" if call.effect else ""
    yield "what", one_line(f"{call.boundary}: {call.name}{effect}", 200)
    yield "when", f"{words.moment(call.wall)}, took {words.took(call.took_ns)}"
    yield "where", one_line(f"{call.at or '?'} ({call.ref})", 200)
    for step in why(story, call):
        yield "why", step
    ended = call.how or "never answered: it was in flight when the tape ends"
    if call.failure is not None:
        ended += f" · {call.failure.type}: {call.failure.message}"
    yield "ended", one_line(ended, 300)
    for used in usages(call):
        cached = f", {words.count(used.cache_read_tokens)} read from cache" if used.cache_read_tokens else ""
        written = f", {words.count(used.cache_write_tokens)} written to cache" if used.cache_write_tokens else ""
        yield "tokens", f"{words.count(used.input_tokens)} in{cached}{written}, {words.count(used.output_tokens)} out"
    if call.cost is not None:
        yield "cost", f"{words.money(float(call.cost.usd))} ({call.cost.source})"
    elif usages(call):
        yield "cost", "unknown: no price for this model ([prices] in playhead.toml sets one)"


def why(story: Story, call: CallItem) -> list[str]:
    """The chain of causes, nearest first."""
    steps: list[str] = [one_line(call.why, 200)] if call.why else []
    seen = {call.ref}
    ref = call.cause or call.parent
    while ref in story.items and ref not in seen and len(steps) < 20:
        seen.add(ref)
        item = story.items[ref]
        asked = "asked for by" if isinstance(item, CallItem) and item.llm else "inside"
        steps.append(f"{asked} {one_line(label(item).plain, 160)}")
        ref = getattr(item, "cause", None) or item.parent
    return steps


def _sections(call: CallItem) -> Iterator[tuple[str, str]]:
    if call.llm:
        for exchange in call.llm:
            yield from _exchange(exchange)
    else:
        yield "Request", pretty(call.request)
        if call.head is not None:
            yield "Response head", pretty(call.head)
        for stream in dict.fromkeys(piece.stream for piece in call.pieces):
            body = b"".join(piece.data for piece in call.pieces if piece.stream == stream)
            yield stream, body.decode("utf-8", "backslashreplace")
        if call.value is not None:
            yield "Result", pretty(call.value)
    if call.failure is not None and call.failure.traceback:
        yield "Traceback", "\n".join(call.failure.traceback)
    if len(call.pieces) > 1:
        yield "Stream", _timing(call)


def _timing(call: CallItem) -> str:
    first, last = call.pieces[0].at_ns, call.pieces[-1].at_ns
    total = sum(len(piece.data) for piece in call.pieces)
    return (
        f"{len(call.pieces)} pieces, {words.size(total)}; first after {words.took(first)}, "
        f"last after {words.took(last)}; ended: {call.how or 'never'}"
    )


def _exchange(exchange: LlmExchange) -> Iterator[tuple[str, str]]:
    request, response = exchange.request, exchange.response
    yield "Model", f"{request.model or '?'}" + (" (streamed)" if request.stream else "")
    if request.params:
        yield "Parameters", pretty(dict(request.params))
    if request.system:
        yield "System", request.system
    if request.tools:
        yield "Tools offered", "\n".join(f"{tool.name}: {one_line(tool.description or '', 100)}" for tool in request.tools)
    for message in request.messages:
        yield f"[{message.role}]", "\n".join(_part(part) for part in message.parts)
    if response is None:
        yield "Answer", "none on the tape"
        return
    state = "" if response.complete else f" (incomplete: {response.reason})"
    yield f"Answer{state}", "\n".join(_part(part) for part in response.parts) or "(empty)"
    if response.stop_reason:
        yield "Stopped", response.stop_reason


def _part(part: Part) -> str:
    if isinstance(part, (Words, Refusal)):
        return part.text
    if isinstance(part, Thinking):
        return f"(thinking) {part.text}"
    if isinstance(part, ToolUse):
        return f"→ {part.name}({pretty(part.arguments)})  {part.id or ''}"
    if isinstance(part, ToolResult):
        inner = "\n".join(_part(one) for one in part.content)
        return f"← {part.id or part.name or ''}{' (error)' if part.is_error else ''} {inner}"
    if isinstance(part, Image):
        return f"(image {part.media_type or ''} {part.url or words.size(len(part.data or '') * 3 // 4)})"
    if isinstance(part, Other):
        return f"({part.type}) {pretty(part.data)}"
    return ""


def pretty(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (TypeError, ValueError):
        return repr(value)
