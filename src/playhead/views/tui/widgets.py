"""Widgets: a list of lines with a cursor, its rows, and a prompt. Knows Textual; not what lines mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from rich.cells import get_character_cell_size
from rich.console import Console
from rich.segment import Segment
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input

from playhead.views.text.console import PALETTE
from playhead.views.text.safe import clean

# Resolves the names of our styles. Nothing is printed with it.
_STYLES = Console(theme=PALETTE, force_terminal=True, color_system="truecolor", width=400)


class LineList(ScrollView, can_focus=True, inherit_bindings=False):
    """A list of lines. Posts `Moved` when the cursor moves, and `Chosen` when Enter is pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("home,g", "jump(0)", "first", show=False),
        Binding("end,G", "jump(-1)", "last", show=False),
        Binding("enter", "choose", "Open"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--cursor"}
    DEFAULT_CSS = (
        "LineList { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }"
    )

    class Moved(Message):
        """The cursor moved to another line."""

        def __init__(self, lines: LineList, at: int) -> None:
            super().__init__()
            self.lines, self.at = lines, at

        @property
        def control(self) -> LineList:
            return self.lines

    class Chosen(Moved):
        """Enter was pressed, or the line under the cursor was clicked."""

    def __init__(
        self,
        *,
        cursor: bool = True,
        opens: bool = True,
        id: str | None = None,  # noqa: A002  Textual's word
    ) -> None:
        super().__init__(id=id)
        self.opens = opens and cursor
        self.rows: Rows = NO_ROWS
        self.has_cursor = cursor
        self.cursor = 0

    @property
    def room(self) -> int:
        """Return the columns for a line. One is reserved for the scrollbar, so that it never shifts the text."""
        return max(1, self.size.width - 1)

    def show(self, rows: Rows, *, at: int | None = None) -> None:
        """Show other rows. `at` is the new place of the cursor; None: it stays."""
        self.rows = rows
        self._fit()
        if at is not None:
            self.cursor = at
        self.cursor = max(0, min(self.cursor, len(rows) - 1))
        self._scroll_to_cursor()
        self.refresh()

    def refresh_rows(self) -> None:
        """Show the same rows after their number or contents changed."""
        self.show(self.rows)

    def _fit(self) -> None:
        self.rows.fit(self.room)
        self.virtual_size = Size(self.room, len(self.rows))

    def on_resize(self, _: Resize) -> None:
        self._fit()
        self._scroll_to_cursor()
        self.refresh()

    def move_to(self, at: int) -> None:
        at = max(0, min(at, len(self.rows) - 1))
        if at != self.cursor:
            self.cursor = at
            self.refresh()
            self.post_message(self.Moved(self, at))
        self._scroll_to_cursor()

    def _scroll_to_cursor(self) -> None:
        if self.has_cursor and len(self.rows):
            self.scroll_to_region(
                Region(0, self.cursor, 1, 1), animate=False, force=True, immediate=True
            )

    def to_end(self) -> None:
        self.scroll_to(y=max(0, len(self.rows) - self.size.height), animate=False, immediate=True)

    def action_move(self, by: int) -> None:
        if self.has_cursor:
            self.move_to(self.cursor + by)
        else:
            self.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        rows = max(1, self.size.height - 1)
        if self.has_cursor:
            self.move_to(self.cursor + by * rows)
        else:
            self.scroll_relative(y=by * rows, animate=False)

    def action_jump(self, to: int) -> None:
        at = to if to >= 0 else len(self.rows) - 1
        if self.has_cursor:
            self.move_to(at)
        else:
            self.scroll_to(y=at, animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the key for opening where nothing can be opened."""
        return self.opens if action == "choose" else super().check_action(action, parameters)

    def action_choose(self) -> None:
        if self.opens and len(self.rows):
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: Click) -> None:
        at = event.y + self.scroll_offset.y
        if self.has_cursor and at < len(self.rows):
            if at == self.cursor:
                self.action_choose()
            self.move_to(at)

    def find(self, words: str, *, back: bool = False) -> bool:
        """Move to the next line that contains the words, wrapping around. False: no line does."""
        wanted, count = words.casefold(), len(self.rows)
        for step in range(1, count + 1):
            at = (self.cursor + (-step if back else step)) % count
            if wanted in self.rows.text(at).plain.casefold():
                self.move_to(at)
                return True
        return False

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        base = self.rich_style
        if at >= len(self.rows):
            return Strip.blank(self.size.width, base)
        strip = Strip(_segments(self.rows.text(at))).adjust_cell_length(self.size.width)
        if self.has_cursor and at == self.cursor:
            return strip.apply_style(base + self.get_component_rich_style("lines--cursor"))
        return strip.apply_style(base)


def _segments(text: Text) -> list[Segment]:
    # rich drops the base style of a text without spans.
    whole = _STYLES.get_style(text.style) if text.style else None
    return [
        Segment(one.text, whole + one.style if whole and one.style else whole or one.style)
        for one in text.render(_STYLES, end="")
        if one.text
    ]


class Rows(Protocol):
    """Rows of a list. `fit` is called first, and whenever the width changes."""

    def fit(self, width: int) -> None:
        """Set the width of the lines."""

    def __len__(self) -> int: ...

    def text(self, at: int) -> Text:
        """Return one line; the list truncates it to the width."""


class Made:
    """Rows that are all made at once for a width: a page of details, a table."""

    def __init__(self, make: Callable[[int], Sequence[Text]]) -> None:
        self._make = make
        self._width = -1
        self._lines: Sequence[Text] = ()

    def fit(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._lines = self._make(width)

    def __len__(self) -> int:
        return len(self._lines)

    def text(self, at: int) -> Text:
        return self._lines[at]


NO_ROWS = Made(lambda _: ())


def folded(text: str, width: int, *, style: str = "", indent: str = "") -> list[Text]:
    """Wrap an untrusted text into lines of at most `width` columns; control characters are made visible."""
    room = max(8, width - len(indent))
    lines: list[Text] = []
    for line in clean(text).replace("\t", "    ").split("\n"):
        at = Text(line, style=style)
        pieces = at.divide(_cuts(line, room)) if at.cell_len > room else [at]
        lines += [Text.assemble(indent, piece) for piece in pieces]
    return lines


def _cuts(line: str, room: int) -> list[int]:
    """Return where to break a line: between words if possible. Wide characters count as two columns."""
    cuts: list[int] = []
    start = 0
    while (end := _reach(line, start, room)) < len(line):
        space = line.rfind(" ", start + (end - start) // 2, end)
        start = space + 1 if space >= 0 else end
        cuts.append(start)
    return cuts


def _reach(line: str, start: int, room: int) -> int:
    """Return the end of the longest piece from `start` that fits into `room` columns; it has a character at least."""
    if line.isascii():
        return start + room
    used = 0
    for at in range(start, len(line)):
        used += get_character_cell_size(line[at])
        if used > room:
            return max(at, start + 1)
    return len(line)


class Prompt(Input):
    """A one-line input. Posts `Answered` with the text, or `Cancelled`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "OK"),
        Binding("escape", "leave", "Cancel", key_display="esc"),
    ]
    DEFAULT_CSS = """
    Prompt { height: 1; border: none; padding: 0 1; display: none; }
    Prompt:focus { border: none; }
    Prompt.open { display: block; }
    """

    class Answered(Message):
        """Enter was pressed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Cancelled(Message):
        """Escape was pressed."""

    def ask(self, what: str, text: str = "") -> None:
        # A notification would cover the question.
        self.app.clear_notifications()
        self.placeholder = what
        self.value = text
        self.add_class("open")
        self.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.remove_class("open")
        self.post_message(self.Answered(self.value.strip()))

    def action_leave(self) -> None:
        self.remove_class("open")
        self.post_message(self.Cancelled())
