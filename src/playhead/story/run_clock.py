"""The clock of a run: how far into the run an item happened. Every view uses this one. Pure.

The clock starts when the agent does: with its first call, turn or output. Items before it, such as the calls of
libraries while they are imported, are at 0. The pause before a run was resumed is cut out: it
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
    """Return {ref: nanoseconds to add to the item's monotonic times, so that the agent starts at 0}: earlier times are
    negative.
    """
    found: dict[str, int] = {}
    latest = 0
    for number, items in enumerate(generations(story.items.values())):
        start = items[0].mono
        if number == 0 and story.agent_mono is not None:
            start = story.agent_mono
        offset = latest - start
        latest = max(latest, *(_end_of(item) + offset for item in items))
        found.update((item.ref, offset) for item in items)
    return found


def position_of(story: Story, item: Item) -> int:
    """Return the nanoseconds from the start of the run to the start of an item."""
    return max(0, item.mono + offsets(story)[item.ref])


def _end_of(item: Item) -> int:
    ended = None if isinstance(item, NoteItem) else item.ended
    return item.mono if ended is None else max(item.mono, ended.mono)
