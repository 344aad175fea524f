"""The clock of a run: how far into the run an item happened. Every view uses this one. Pure.

The clock starts with the first item of the tape, shown or not. The pause before a run was resumed is cut out: it
may be days, and the monotonic clock may have restarted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from playhead import events
from playhead.story.shape import Item, NoteItem, Story


def generations(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Split the items where the run was resumed."""
    here: list[Item] = []
    for item in items:
        if isinstance(item, NoteItem) and item.kind == events.RUN_START and here:
            yield here
            here = []
        here.append(item)
    if here:
        yield here


def offsets(story: Story) -> dict[str, int]:
    """Return {ref: nanoseconds to add to the item's monotonic times, so that the run starts at 0}."""
    found: dict[str, int] = {}
    latest = 0
    for items in generations(story.items.values()):
        offset = latest - items[0].mono
        latest = max(latest, *(_end_of(item) + offset for item in items))
        found.update((item.ref, offset) for item in items)
    return found


def position_of(story: Story, item: Item) -> int:
    """Return the nanoseconds from the start of the run to the start of an item."""
    return max(0, item.mono + offsets(story)[item.ref])


def _end_of(item: Item) -> int:
    ended = None if isinstance(item, NoteItem) else item.ended
    return item.mono if ended is None else max(item.mono, ended.mono)
