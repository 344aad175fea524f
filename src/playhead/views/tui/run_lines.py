"""The lines of the run screen: the tree, which can be folded, and one item in full. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.text import Text

from playhead import events
from playhead.story import CallItem, Item, NoteItem, Story, TurnItem
from playhead.story.run_clock import position_of
from playhead.views.text import words
from playhead.views.text.call import fact_style, facts, sections, why
from playhead.views.text.divergence_lines import divergence_lines
from playhead.views.text.labels import heading, reason
from playhead.views.text.safe import one_line
from playhead.views.text.story import Columns
from playhead.views.text.tree import TreeLine, tree_lines
from playhead.views.text.words import pretty
from playhead.views.tui.widgets import folded

_STEP = 2


class TreeRows:
    """The lines of a story's tree, without those below folded lines."""

    def __init__(self, story: Story, *, output: bool = False) -> None:
        self.story = story
        self.output = output
        self._width = 0
        self._lines: list[TreeLine] = []
        self._owners: list[str | None] = []
        # The items of the lines. Those of joined output differ from the items of the story.
        self._items: dict[str, Item] = {}
        self._depths: list[int] = []
        self._columns = Columns(())
        self._seen: list[int] = []
        self._below: dict[int, int] = {}
        # Calls of libraries while they were loaded are hidden until a person unfolds them.
        self.folded = {
            ref
            for ref, one in story.items.items()
            if isinstance(one, NoteItem) and one.kind == events.START_UP
        }

    def fit(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._lines = list(
                tree_lines(self.story, output=self.output, start_up=True, width=width)
            )
            self._columns = Columns(self._lines)
            self._find_owners()
        self._fold()

    def _find_owners(self) -> None:
        """Find the item of each line: lines of text belong to the item above them."""
        self._depths = [len(line.prefix) // _STEP for line in self._lines]
        self._owners = []
        owner: str | None = None
        for line in self._lines:
            if line.item is not None:
                owner = line.item.ref
                self._items[owner] = line.item
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
        """Return the item of a line."""
        if not 0 <= at < len(self._seen):
            return None
        owner = self._owners[self._seen[at]]
        return None if owner is None else self._items[owner]

    def place_of(self, ref: str) -> int | None:
        """Return the line of an item. Unfolds all if it is hidden."""
        if ref not in self._owners:
            return None
        index = self._owners.index(ref)
        if index not in self._seen:
            self.folded.clear()
            self._fold()
        return self._seen.index(index)

    def fold(self, at: int) -> int:
        """Fold the lines below, or go to the parent if there are none. Return the new place of the cursor."""
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
        """Return the line of the failure after the one on this line, else of the first failure."""
        line_of = self._line_of()
        here = self.item(after)
        refs = list(self.story.failures())
        at = refs.index(here.ref) + 1 if here is not None and here.ref in refs else 0
        places = map(line_of, [*refs[at:], *refs[:at]])
        return next((place for place in places if place is not None), None)

    def _line_of(self) -> Callable[[str], int | None]:
        self.folded.clear()
        self._fold()
        first: dict[str | None, int] = {}
        for at, index in enumerate(self._seen):
            first.setdefault(self._owners[index], at)
        return first.get

    def __contains__(self, at: object) -> bool:
        return isinstance(at, int) and 0 <= at < len(self._seen)


_LABEL = 8
# Longer bodies are truncated; `playhead show --full` prints them.
_LONGEST = 200_000


def item_lines(story: Story, item: Item, width: int) -> list[Text]:
    lines = [heading(item, width), Text()]
    for title, text, style in _facts(story, item):
        lines += _fact(title, text, style, width)
    if isinstance(item, NoteItem) and _is_divergence(item):
        lines += [Text(), *divergence_lines(item.data, width)]
    for title, body in _bodies(item):
        lines += [Text(), Text(one_line(title, width), style="name")]
        lines += folded(body[:_LONGEST], width, indent="  ") if body else []
        if len(body) > _LONGEST:
            lines.append(Text(f"  … {len(body) - _LONGEST:,} more characters", style="quiet"))
    return lines


def _fact(title: str, text: str, style: str, width: int) -> list[Text]:
    first, *rest = folded(text, width - _LABEL - 1, style=style)
    line = Text.assemble((f"{title:<{_LABEL}} ", "quiet"), first)
    return [line, *(Text.assemble(" " * (_LABEL + 1), more) for more in rest)]


def _facts(story: Story, item: Item) -> Iterator[tuple[str, str, str]]:
    if isinstance(item, CallItem):
        for title, text in facts(story, item):
            yield title, text, fact_style(title, item)
        return
    if isinstance(item, TurnItem) and item.failure is not None:
        yield "ended", f"{item.how}: {reason(item.failure)}", "failed"
    yield "who", f"{item.who or '?'}, lane {item.lane}", ""
    yield "what", item.name if isinstance(item, TurnItem) else item.kind, ""
    since = words.position(position_of(story, item))
    took = ""
    if isinstance(item, TurnItem):
        took = f", took {words.took(item.took_ns)}" if item.how else ", never ended"
    yield "when", f"{words.moment(item.wall)}, {since} into the run{took}", ""
    yield "where", f"{item.at or '?'} (event {item.ref})", ""
    for step in _why(story, item):
        yield "why", step, "why"


def _why(story: Story, item: TurnItem | NoteItem) -> list[str]:
    said = item.purpose if isinstance(item, TurnItem) else item.why
    own = [said] if said else []
    above = story.items.get(item.parent or "")
    if above is None:
        return own
    return [*own, f"inside {heading(above, 200).plain}", *_chain(story, above)]


def _chain(story: Story, item: Item) -> list[str]:
    return why(story, item) if isinstance(item, CallItem) else []


def _bodies(item: Item) -> Iterator[tuple[str, str]]:
    if isinstance(item, CallItem):
        yield from sections(item, full=True)
    elif isinstance(item, TurnItem):
        if item.input is not None:
            yield "Input", pretty(item.input)
        if item.context is not None:
            yield "Context", item.context
        for seam in item.seams:
            value = "" if seam.value is None else pretty(seam.value)
            yield f"◆ {seam.name} +{words.took(seam.took_ns)}", value
        if item.value is not None:
            yield "Result", pretty(item.value)
        if item.failure is not None and item.failure.traceback:
            yield "Traceback", "\n".join(item.failure.traceback)
    elif item.data is not None and not _is_divergence(item):
        yield "Data", pretty(item.data)


def _is_divergence(note: NoteItem) -> bool:
    return note.kind == events.DIVERGENCE and isinstance(note.data, dict)
