"""Fold the calls that libraries make while they are loaded. Pure.

Importing an SDK starts `ldconfig -p` and `uname -p`. They are on the tape, because a replay must answer them. But they
are not the agent's work: the story holds them below one line, the totals do not count them, and chaos leaves them
alone.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Mapping

from playhead import events
from playhead.events import BY_LIBRARY
from playhead.story.shape import CallItem, Item, NoteItem


def is_start_up(item: Item) -> bool:
    return isinstance(item, CallItem) and BY_LIBRARY in item.facts


def with_start_up_folded(items: Mapping[str, Item]) -> dict[str, Item]:
    """Return the items with one note above the calls that libraries made while they were loaded: one note for each
    item that they are part of.
    """
    groups: dict[tuple[str | None, str], list[CallItem]] = defaultdict(list)
    for item in items.values():
        if isinstance(item, CallItem) and is_start_up(item):
            groups[item.cause or item.parent, item.lane].append(item)
    if not groups:
        return dict(items)
    notes = {calls[0].ref: _note(calls) for calls in groups.values()}
    above = {call.ref: notes[calls[0].ref].ref for calls in groups.values() for call in calls}
    folded: dict[str, Item] = {}
    for ref, item in items.items():
        if ref in notes:
            folded[notes[ref].ref] = notes[ref]
        if ref in above and isinstance(item, CallItem):
            folded[ref] = dataclasses.replace(item, parent=above[ref], cause=None)
        else:
            folded[ref] = item
    return folded


def _note(calls: list[CallItem]) -> NoteItem:
    first = calls[0]
    programs = Counter(call.name for call in calls)
    return NoteItem(
        ref=f"{first.ref}-start-up",
        kind=events.START_UP,
        lane=first.lane,
        wall=first.wall,
        mono=first.mono,
        at=first.at,
        who=first.who,
        parent=first.parent,
        cause=first.cause,
        data={
            "programs": ", ".join(
                name if times == 1 else f"{name} ×{times}" for name, times in programs.items()
            ),
            "libraries": sorted({str(call.facts[BY_LIBRARY]) for call in calls}),
            "calls": [call.number for call in calls],
        },
        place=first.place,
    )
