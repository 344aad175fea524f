"""A story as the rows of the page's tree, with a name and a one-line text each. Pure.

Prompts of a person and the seams of a turn have rows of their own. Walks without recursion: a tape may nest
deeper than Python's stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from playhead import llm as wire
from playhead.story import CallItem, Failure, Item, NoteItem, Story, TurnItem
from playhead.story.derived_tools import DERIVED
from playhead.views.text.labels import answer, name_of, note_texts
from playhead.views.text.words import arguments, compact

Kind = Literal["turn", "call", "note", "seam", "person"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    """One row of the tree. `seam` is the index of a turn's seam; -1: the row is the item itself."""

    kind: Kind
    item: Item
    depth: int
    above: str | None
    seam: int = -1

    @property
    def ref(self) -> str:
        """The unique name of the row; the part before `~` is the ref of the item."""
        if self.kind == "seam":
            return f"{self.item.ref}~{self.seam}"
        return f"{self.item.ref}~asked" if self.kind == "person" else self.item.ref


def rows_of(story: Story) -> Iterator[PageRow]:
    """Yield the rows from top to bottom."""
    stack = _below(story, None, 0)[::-1]
    while stack:
        row = stack.pop()
        if row.kind == "call" and asked_by_person(row.item):
            yield PageRow(kind="person", item=row.item, depth=row.depth, above=row.above)
        yield row
        if row.kind in ("turn", "call", "note"):
            stack.extend(_below(story, row.item, row.depth + 1)[::-1])


def asked_by_person(item: Item) -> str:
    """Return the last message of a person to the model; results of tools have rows themselves."""
    if not isinstance(item, CallItem) or not item.llm:
        return ""
    said = item.llm[0].request.messages[-1:]
    if not said or said[0].role != "user":
        return ""
    if any(isinstance(part, wire.ToolResult) for part in said[0].parts):
        return ""
    return said[0].text


def _below(story: Story, item: Item | None, depth: int) -> list[PageRow]:
    above = None if item is None else item.ref
    items = [story.items[ref] for ref in story.children.get(above, ())]
    below = [PageRow(kind=_kind(one), item=one, depth=depth, above=above) for one in items]
    if not isinstance(item, TurnItem) or not item.seams:
        return below
    placed = [(row.item.place, row) for row in below]
    placed += [
        (
            seam.passed.place if seam.passed else 0,
            PageRow(kind="seam", item=item, depth=depth, above=above, seam=index),
        )
        for index, seam in enumerate(item.seams)
    ]
    return [row for _, row in sorted(placed, key=lambda pair: pair[0])]


def _kind(item: Item) -> Kind:
    if isinstance(item, TurnItem):
        return "turn"
    return "call" if isinstance(item, CallItem) else "note"


# More than a line on a wide screen, and small enough for 100,000 rows.
_LONGEST = 160
# Markdown headings and bold text are not rendered in a row: their marks are removed.
_MARKS = re.compile(r"^#{1,6} |\*\*", re.MULTILINE)


def name_and_brief(row: PageRow) -> tuple[str, str]:
    item = row.item
    if isinstance(item, TurnItem):
        if row.kind == "seam":
            seam = item.seams[row.seam]
            return seam.name, "" if seam.value is None else cut(compact(seam.value))
        return item.name, cut(item.purpose or "")
    if isinstance(item, NoteItem):
        title, summary = note_texts(item)
        return title, cut(summary)
    if row.kind == "person":
        return "person", cut(asked_by_person(item))
    return cut(name_of(item)), cut(_said(item) if item.llm else _done(item))


def reason(failure: Failure | None) -> str:
    if failure is None:
        return ""
    return cut(f"{failure.type}: {failure.message}" if failure.message else failure.type)


def cut(text: str) -> str:
    flat = " ".join(text[: _LONGEST * 4].split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"


def _said(call: CallItem) -> str:
    for exchange in call.llm:
        response = exchange.response
        if response is None:
            continue
        if response.text.strip():
            return _MARKS.sub("", response.text[: _LONGEST * 4])
        if response.tool_calls:
            return "→ " + ", ".join(use.name or "?" for use in response.tool_calls)
        if response.thinking.strip():
            return f"thought: {response.thinking}"
    return ""


def _done(call: CallItem) -> str:
    request = call.request
    given = ""
    if isinstance(request, dict) and call.boundary in ("tool", "mcp", "state"):
        given = arguments(request["arguments"]) if "arguments" in request else ""
    answered = answer(call)
    said = f"{given[:_LONGEST]} → {answered}" if given and answered else given or answered
    return f"{cut(said)[: _LONGEST - 12]} (derived)" if call.facts.get(DERIVED) else said
