"""Which items of a run hold a text, anywhere in what was asked, answered or noted. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from playhead.model import CallItem, Item, NoteItem, Story

MOST = 2000


def find(story: Story, text: str, limit: int = MOST) -> list[str]:
    """Their refs, in the order of the tape; capital letters do not count."""
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
    """Cheap ones first: most searches are for a name or an error."""
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
    for exchange in item.llm:
        if exchange.response is not None:
            yield from (exchange.response.text, exchange.response.thinking)
    body = item.request.get("body") if isinstance(item.request, dict) else None
    told = body.get("text") if isinstance(body, dict) else None
    # The body of a request is JSON text: as it stands, quotes in it would be escaped twice.
    yield told if isinstance(told, str) else ""
    yield from (_flat(item.request), _flat(item.value), _flat(item.head))
    yield b"".join(piece.data for piece in item.pieces).decode("utf-8", "replace")


def _flat(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
