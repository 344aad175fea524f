"""The words of a run by where they stand: what was asked, answered, done, and what went wrong. Pure.

A conversation is sent again with every call: each message counts once. Long runs are read up to a
limit a scope: the catalogue of many runs must not outgrow their tapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from playhead import events
from playhead.library.fulltext import SCOPES, Scope
from playhead.library.rows import note_of, plain
from playhead.llm import LlmExchange, Part, Refusal, Text, Thinking, ToolResult, ToolUse
from playhead.story import CallItem, Failure, NoteItem, Story, TurnItem

LONGEST = 128 * 1024
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]+")
_DEEPEST = 12


class _Pages:
    """The text of each scope in the making."""

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
        """The words in any value that a tape can hold."""
        if value is not None and self._room[scope] > 0:
            self.add(scope, " ".join(_words(value)))

    def texts(self) -> dict[str, str]:
        return {scope: clean("\n".join(page)) for scope, page in self._pages.items()}


def texts_of(story: Story) -> dict[str, str]:
    """One text a scope, fit for a database."""
    pages = _Pages()
    _about(story, pages)
    for item in story.items.values():
        if isinstance(item, CallItem):
            _call(item, pages)
        elif isinstance(item, TurnItem):
            pages.add("about", f"{item.name} {item.purpose or ''}")
            pages.put("prompt", item.input)
            pages.put("response", item.value)
            _failure(item.failure, pages)
        else:
            _note(item, pages)
    _failure(story.failure, pages)
    return pages.texts()


def clean(text: str) -> str:
    """Without control characters, and with no half of a character."""
    if _CONTROL.search(text):
        text = _CONTROL.sub(" ", text)
    return plain(text)


def _about(story: Story, pages: _Pages) -> None:
    manifest = story.manifest
    pages.add("about", manifest.name)
    pages.put("about", manifest.command)
    pages.put("about", manifest.tags)
    pages.add("about", note_of(manifest))


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
