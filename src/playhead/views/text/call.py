"""One call in full: when, where and why it happened, its request, its answer, and its chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rich.text import Text

from playhead import llm as wire
from playhead.story import CallItem, Story, TurnItem
from playhead.story.run_clock import position_of
from playhead.story.totals import usages
from playhead.views.text import words
from playhead.views.text.console import console, width_of
from playhead.views.text.labels import heading, label, reason
from playhead.views.text.safe import clean, one_line
from playhead.views.text.words import pretty

_LONGEST_BODY = 4_000
_MOST_CAUSES = 20

Section = tuple[str, str]


def print_call(story: Story, call: CallItem, *, full: bool = False) -> None:
    out = console()
    width = width_of(out)
    out.print(heading(call, width), no_wrap=True, overflow="crop")
    for title, text in facts(story, call):
        out.print(
            Text.assemble((f"  {title:<8}", "quiet"), (text, fact_style(title, call))),
            no_wrap=True,
            overflow="ellipsis",
        )
    for title, body in sections(call, full=full):
        out.print()
        out.print(Text(one_line(title, width), style="name"))
        for line in _shortened(clean(body), full=full).splitlines():
            out.print(Text(f"  {line}"), soft_wrap=True)


def fact_style(title: str, call: CallItem) -> str:
    if title == "ended":
        return "failed" if call.failure is not None else "interrupted" if not call.ok else "ok"
    return "why" if title == "why" else "default"


def facts(story: Story, call: CallItem) -> Iterator[tuple[str, str]]:
    """Yield the facts of a call: who, what, when, where, why, outcome, tokens, cost. An error comes first."""
    ended = call.how or "no answer: it was in flight when the tape ended"
    if call.failure is not None:
        yield "ended", f"{ended}: {reason(call.failure)}"
    yield "who", one_line(f"{call.who or '?'}, lane {call.lane}", 200)
    effect = f", effect: {call.effect}" if call.effect else ""
    yield "what", one_line(f"{call.boundary} {call.name}{effect}", 400)
    since = words.position(position_of(story, call))
    yield (
        "when",
        f"{words.moment(call.wall)}, {since} into the run, took {words.took(call.took_ns)}",
    )
    yield "where", one_line(f"{call.at or '?'} (event {call.ref})", 200)
    for step in why(story, call):
        yield "why", step
    if call.failure is None:
        yield "ended", ended
    for used in usages(call):
        shares = (
            (used.cache_read_tokens, "read from cache"),
            (used.cache_write_tokens, "written to cache"),
        )
        cached = "".join(f", {words.count(n)} {what}" for n, what in shares if n)
        thought = (
            f" ({words.count(used.reasoning_tokens)} thinking)" if used.reasoning_tokens else ""
        )
        given, made = words.count(used.input_tokens), words.count(used.output_tokens)
        yield "tokens", f"{given} in{cached}; {made} out{thought}"
    match = call.facts.get("match")
    if isinstance(match, dict) and "of" in match:
        taped = f"{match.get('number')} of {story.manifest.replay_of or 'its tape'}"
        yield "tape", one_line(f"answered from call {taped}, match: {match.get('rung')}", 200)
    if call.cost is not None:
        yield "cost", f"{words.money(float(call.cost.usd))} ({call.cost.source})"
    elif usages(call):
        yield "cost", "unknown: no price for this model; [prices] in playhead.toml sets one"


def why(story: Story, call: CallItem) -> list[str]:
    """Return the chain of causes, nearest first."""
    steps: list[str] = [one_line(call.why, 200)] if call.why else []
    seen = {call.ref}
    ref = call.cause or call.parent
    while ref is not None and ref in story.items and ref not in seen:
        seen.add(ref)
        item = story.items[ref]
        relation = "asked for by" if isinstance(item, CallItem) and item.llm else "inside"
        if isinstance(item, TurnItem):
            relation = "in"
        steps.append(f"{relation} {one_line(label(item).plain, 200)}")
        if len(steps) >= _MOST_CAUSES:
            break
        ref = getattr(item, "cause", None) or item.parent
    return steps


def sections(call: CallItem, *, full: bool) -> Iterator[Section]:
    if call.llm:
        for exchange in call.llm:
            yield from exchange_sections(exchange, full=full)
    else:
        yield "Request", pretty(call.request)
        if call.head is not None:
            yield "Answer begins", pretty(call.head)
        for stream in dict.fromkeys(piece.stream for piece in call.pieces):
            body = b"".join(piece.data for piece in call.pieces if piece.stream == stream)
            yield stream, body.decode("utf-8", "backslashreplace")
        if call.value is not None:
            yield "Result", pretty(call.value)
    if call.failure is not None and call.failure.traceback:
        yield "Traceback", "\n".join(call.failure.traceback)
    if len(call.pieces) > 1:
        yield "Stream", _timing(call)
    if full:
        yield "Facts", pretty({**call.facts, **call.outcome})


def _timing(call: CallItem) -> str:
    pieces = [piece for piece in call.pieces if piece.stream != "sent"] or list(call.pieces)
    total = sum(len(piece.data) for piece in pieces)
    first, last = words.took(pieces[0].at_ns), words.took(pieces[-1].at_ns)
    return (
        f"{len(pieces)} pieces, {words.size(total)}\n"
        f"first after {first}, last after {last}; {_longest_pause(pieces)}"
    )


def _longest_pause(pieces: Sequence[object]) -> str:
    moments = [getattr(piece, "at_ns", 0) for piece in pieces]
    pause = max((later - earlier for earlier, later in pairwise(moments)), default=0)
    return f"longest pause {words.took(pause)}"


def _shortened(body: str, *, full: bool) -> str:
    if full or len(body) <= _LONGEST_BODY:
        return body
    rest = len(body) - _LONGEST_BODY
    return f"{body[:_LONGEST_BODY]}\n… {rest:,} more characters; --full shows all"


# Every call repeats the whole conversation; its last messages are new.
_LAST_MESSAGES = 4
_MOST_PARAMETERS = 12


def exchange_sections(exchange: wire.LlmExchange, *, full: bool) -> Iterator[tuple[str, str]]:
    request, response = exchange.request, exchange.response
    yield "Request", _request(request)
    if request.system:
        yield "system", request.system
    if request.tools:
        yield f"{len(request.tools)} tools offered", "\n".join(_tool(one) for one in request.tools)
    first = 0 if full else max(0, len(request.messages) - _LAST_MESSAGES)
    if first:
        yield f"… {first} earlier messages", "--full shows them"
    for message in request.messages[first:]:
        yield message.role, "\n".join(part_text(part) for part in message.parts)
    if response is None:
        yield "No answer", "the tape has none"
        return
    ending = "" if response.complete else f" (incomplete: {response.reason})"
    stopped = f" · stopped: {response.stop_reason}" if response.stop_reason else ""
    said = "\n".join(part_text(part) for part in response.parts)
    yield f"Answer{ending}{stopped}", said or "(empty)"
    for number, parts in enumerate(response.alternatives, 2):
        yield f"Answer {number}", "\n".join(part_text(part) for part in parts)


def part_text(part: wire.Part) -> str:
    match part:
        case wire.Text() | wire.Refusal():
            return part.text
        case wire.Thinking():
            return f"(thinking) {part.text}" if part.text else "(thinking, encrypted)"
        case wire.ToolUse():
            cut = "" if part.complete else " (cut off)"
            return f"→ {part.name}({pretty(part.arguments)}){cut}"
        case wire.ToolResult():
            inner = "\n".join(part_text(one) for one in part.content)
            return f"← {'error: ' if part.is_error else ''}{inner}"
        case wire.Image():
            size = words.size(len(part.data or "") * 3 // 4)
            return f"(image {part.media_type or ''} {part.url or size})"
        case _:
            return f"({part.type}) {pretty(part.data)}"


def _request(request: wire.LlmRequest) -> str:
    lines = [f"model = {request.model or '?'}"]
    if request.stream is not None:
        lines.append(f"stream = {str(request.stream).lower()}")
    for name, value in list(request.params.items())[:_MOST_PARAMETERS]:
        lines.append(f"{one_line(str(name), 60)} = {one_line(pretty(value), 200)}")
    if not request.complete:
        lines.append(f"(incomplete: {request.reason})")
    return "\n".join(lines)


def _tool(tool: wire.LlmTool) -> str:
    described = f": {one_line(tool.description, 120)}" if tool.description else ""
    return f"{tool.name or tool.type}{described}"
