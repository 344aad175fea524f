"""Stories: the events of a run as turns, calls and totals, for all views. See `shape` and `build`."""

from playhead.story.build import tell
from playhead.story.shape import (
    CallItem,
    Failure,
    Item,
    Mark,
    NoteItem,
    SeamItem,
    Story,
    Totals,
    TurnItem,
)
from playhead.story.totals import Prices

__all__ = [
    "CallItem",
    "Failure",
    "Item",
    "Mark",
    "NoteItem",
    "Prices",
    "SeamItem",
    "Story",
    "Totals",
    "TurnItem",
    "tell",
]
