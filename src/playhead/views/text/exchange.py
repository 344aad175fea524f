"""An LLM exchange as titled texts: what was offered, said and answered. Knows the parts of
messages; not where they are printed.
"""

from __future__ import annotations

from collections.abc import Iterator

from playhead import llm as wire
from playhead.views.text import words
from playhead.views.text.safe import one_line
from playhead.views.text.values import pretty

# A conversation repeats itself with every call; its end is what this call was about.
_LAST_MESSAGES = 4
_PARAMETERS_THAT_SPEAK = 12


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
        yield "No answer", "none is on the tape"
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
    for name, value in list(request.params.items())[:_PARAMETERS_THAT_SPEAK]:
        lines.append(f"{one_line(str(name), 60)} = {one_line(pretty(value), 200)}")
    if not request.complete:
        lines.append(f"(incomplete: {request.reason})")
    return "\n".join(lines)


def _tool(tool: wire.LlmTool) -> str:
    described = f": {one_line(tool.description, 120)}" if tool.description else ""
    return f"{tool.name or tool.type}{described}"
