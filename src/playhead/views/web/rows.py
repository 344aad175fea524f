"""A story as rows, in the order in which a tree is read. Pure; knows the story's shape, not JSON.

Beside the items themselves, what a person said to the model and the seams of a turn get rows of their
own. Walks without recursion: a tape may nest as it likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from playhead import llm as wire
from playhead.story import CallItem, Item, Story, TurnItem

Kind = Literal["turn", "call", "note", "seam", "person"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the tree. `seam` is the index of the turn's seam that this row stands for."""

    kind: Kind
    item: Item
    depth: int
    above: str | None
    seam: int = -1

    @property
    def ref(self) -> str:
        """The one name of the row; what stands before `~` is the item's."""
        if self.kind == "seam":
            return f"{self.item.ref}~{self.seam}"
        return f"{self.item.ref}~asked" if self.kind == "person" else self.item.ref


def rows_of(story: Story) -> Iterator[Row]:
    """Top to bottom."""
    stack = _below(story, None, 0)[::-1]
    while stack:
        row = stack.pop()
        if row.kind == "call" and asked_by_person(row.item):
            yield Row(kind="person", item=row.item, depth=row.depth, above=row.above)
        yield row
        if row.kind in ("turn", "call", "note"):
            stack.extend(_below(story, row.item, row.depth + 1)[::-1])


def asked_by_person(item: Item) -> str:
    """What a person told the model last; results of tools have rows themselves."""
    if not isinstance(item, CallItem) or not item.llm:
        return ""
    said = item.llm[0].request.messages[-1:]
    if not said or said[0].role != "user":
        return ""
    if any(isinstance(part, wire.ToolResult) for part in said[0].parts):
        return ""
    return said[0].text


def _below(story: Story, item: Item | None, depth: int) -> list[Row]:
    above = None if item is None else item.ref
    items = [story.items[ref] for ref in story.children.get(above, ())]
    below = [Row(kind=_kind(one), item=one, depth=depth, above=above) for one in items]
    if not isinstance(item, TurnItem) or not item.seams:
        return below
    placed = [(row.item.place, row) for row in below]
    placed += [
        (
            seam.passed.place if seam.passed else 0,
            Row(kind="seam", item=item, depth=depth, above=above, seam=index),
        )
        for index, seam in enumerate(item.seams)
    ]
    return [row for _, row in sorted(placed, key=lambda pair: pair[0])]


def _kind(item: Item) -> Kind:
    if isinstance(item, TurnItem):
        return "turn"
    return "call" if isinstance(item, CallItem) else "note"
