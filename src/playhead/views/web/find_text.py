"""Find the items of a run that contain a text in requests, answers or events. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from playhead import llm as wire
from playhead.story import CallItem, Item, NoteItem, Story

MOST = 2000


def find(story: Story, text: str, limit: int = MOST) -> list[str]:
    """Return the refs in the order of the tape; case-insensitive."""
    wanted = text.strip().lower()
    if not wanted:
        return []
    found: list[str] = []
    for ref, item in story.items.items():
        if any(wanted in one.lower() for one in _texts(item)):
            found.append(ref)
            if len(found) >= limit:
                break
    return found


def _texts(item: Item) -> Iterator[str]:
    """Yield the texts of an item, cheap ones first: most searches are for a name or an error."""
    if isinstance(item, NoteItem):
        yield item.kind
        yield _flat(item.data)
        return
    yield item.name
    if item.failure is not None:
        yield f"{item.failure.type}: {item.failure.message}"
    if not isinstance(item, CallItem):
        yield from (item.purpose or "", _flat(item.input), _flat(item.value))
        yield from (f"{seam.name} {_flat(seam.value)}" for seam in item.seams)
        return
    if item.llm:
        for exchange in item.llm:
            yield from _exchange(exchange)
        return
    yield from (_flat(item.request), _flat(item.value), _flat(item.head))
    yield b"".join(piece.data for piece in item.pieces).decode("utf-8", "replace")


def _exchange(exchange: wire.LlmExchange) -> Iterator[str]:
    """Yield the texts that are new in this exchange.

    A conversation is sent again with every request: searching all of it would find an early word in every later call.
    """
    request, response = exchange.request, exchange.response
    yield request.system or ""
    for message in reversed(request.messages):
        if message.role == "assistant":
            break
        yield from (_part(part) for part in message.parts)
    if response is not None:
        yield from (_part(part) for part in response.parts)


def _part(part: wire.Part) -> str:
    if isinstance(part, wire.ToolResult):
        return "\n".join(_part(one) for one in part.content)
    if isinstance(part, wire.ToolUse):
        return f"{part.name} {_flat(part.arguments)}"
    return getattr(part, "text", "") or ""


def _flat(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
