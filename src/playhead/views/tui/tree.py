"""The lines of a run's tree, which can be folded. Knows the story's lines; not the widget."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from playhead.story import CallItem, Item, Story, TurnItem
from playhead.views.text.story import Columns
from playhead.views.text.tree import Line, tree_lines

_STEP = 2


class TreeRows:
    """All lines of a story, less those below folded ones."""

    def __init__(self, story: Story, *, output: bool = False) -> None:
        self.story = story
        self.output = output
        self._width = 0
        self._lines: list[Line] = []
        self._owners: list[str | None] = []
        self._depths: list[int] = []
        self._columns = Columns(())
        self._seen: list[int] = []
        self._below: dict[int, int] = {}
        self.folded: set[str] = set()

    def fit(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._lines = list(tree_lines(self.story, output=self.output, width=width))
            self._columns = Columns(self._lines)
            self._own()
        self._fold()

    def _own(self) -> None:
        """Whose line each is: what was said stands below the call in which it was said."""
        self._depths = [len(line.prefix) // _STEP for line in self._lines]
        self._owners = []
        owner: str | None = None
        for line in self._lines:
            if line.item is not None:
                owner = line.item.ref
            self._owners.append(owner)

    def _fold(self) -> None:
        self._seen, self._below = [], {}
        hidden: int | None = None
        top = 0
        for at, line in enumerate(self._lines):
            if hidden is not None and self._depths[at] > hidden:
                self._below[top] += 1
                continue
            hidden = None
            self._seen.append(at)
            if line.item is not None and line.item.ref in self.folded:
                hidden, top = self._depths[at], at
                self._below[at] = 0

    def __len__(self) -> int:
        return len(self._seen)

    def text(self, at: int) -> Text:
        index = self._seen[at]
        more = self._below.get(index)
        mark = f" +{more}" if more else ""
        text = self._columns.fitted(self._lines[index], self._width - len(mark))
        return text.append(mark, style="running") if mark else text

    def item(self, at: int) -> Item | None:
        """What the line is about."""
        if not 0 <= at < len(self._seen):
            return None
        owner = self._owners[self._seen[at]]
        return None if owner is None else self.story.items[owner]

    def place_of(self, ref: str) -> int | None:
        """The line of an item, unfolding what is above it."""
        if ref not in self._owners:
            return None
        index = self._owners.index(ref)
        if index not in self._seen:
            self.folded.clear()
            self._fold()
        return self._seen.index(index)

    def fold(self, at: int) -> int:
        """Fold what is below the line, or go up where nothing is; where the cursor belongs then."""
        item = self.item(at)
        if item is None:
            return at
        here = self.place_of(item.ref) or 0
        if at == here and (item.ref in self.folded or not self._has_below(here)):
            return self._parent(here)
        self.folded.add(item.ref)
        self._fold()
        return here

    def unfold(self, at: int) -> None:
        item = self.item(at)
        if item is not None and item.ref in self.folded:
            self.folded.remove(item.ref)
            self._fold()

    def _has_below(self, at: int) -> bool:
        index = self._seen[at]
        return index + 1 < len(self._lines) and self._depths[index + 1] > self._depths[index]

    def _parent(self, at: int) -> int:
        depth = self._depths[self._seen[at]]
        for above in range(at - 1, -1, -1):
            index = self._seen[above]
            if self._depths[index] < depth and self._lines[index].item is not None:
                return above
        return at

    def next_failure(self, after: int) -> int | None:
        """The line of the first item that failed after this line, else of the first of all."""
        refs = [ref for ref, item in self.story.items.items() if self._failed(item)]
        # A turn fails because of something in it, and that is what one looks for.
        calls = [ref for ref in refs if isinstance(self.story.items[ref], CallItem)]
        places = sorted(
            place
            for place in map(self._line_of(), calls or refs)
            if place is not None and place in self
        )
        return next((place for place in places if place > after), places[0] if places else None)

    def _line_of(self) -> Callable[[str], int | None]:
        self.folded.clear()
        self._fold()
        first: dict[str | None, int] = {}
        for at, index in enumerate(self._seen):
            first.setdefault(self._owners[index], at)
        return first.get

    def __contains__(self, at: object) -> bool:
        return isinstance(at, int) and 0 <= at < len(self._seen)

    def _failed(self, item: Item) -> bool:
        """Or never answered, in a run that goes on no more."""
        if isinstance(item, CallItem):
            unanswered = item.how is None and self.story.status != "running"
            return item.failure is not None or unanswered
        return isinstance(item, TurnItem) and item.failure is not None
