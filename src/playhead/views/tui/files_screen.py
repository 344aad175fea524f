"""The files of a run as of a step: a slider over the changes, the changed files, one of them as a diff."""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult, RenderResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Click, Resize
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Static

from playhead.story import Item
from playhead.views.tui.file_lines import VIEWS, ChangedFile, FileTravel, FileView
from playhead.views.tui.widgets import LineList, Made
from playhead.workspace.tree_listing import Change

_WIDE = 110


class ChangeSlider(Widget):
    """The position among the changes; each has a tick. A click goes to the nearest one."""

    DEFAULT_CSS = "ChangeSlider { height: 1; }"

    class Sought(Message):
        """Go to this position."""

        def __init__(self, position: int) -> None:
            super().__init__()
            self.position = position

    def __init__(self, last: int) -> None:
        super().__init__()
        self.last = last
        self.position = 0

    def _column(self, position: int) -> int:
        return round(position / max(1, self.last) * max(0, self.size.width - 1))

    def render(self) -> RenderResult:
        width = max(1, self.size.width)
        here = self._column(self.position)
        track = ["━" if at < here else "─" for at in range(width)]
        # More ticks than half of the columns would be a solid line.
        if self.last * 2 < width:
            for position in range(self.last + 1):
                at = self._column(position)
                track[at] = "┿" if at < here else "┼"
        return Text.assemble(
            ("".join(track[:here]), "running"), ("●", "bold"), ("".join(track[here + 1 :]), "quiet")
        )

    def on_click(self, event: Click) -> None:
        share = event.x / max(1, self.size.width - 1)
        self.post_message(self.Sought(round(share * self.last)))


def _is_readable(change: Change) -> bool:
    """Return whether there may be lines to show: a file or link whose content is on the tape."""
    entry = change.after or change.before
    return entry is not None and entry.is_stored and not entry.is_folder


class FilesScreen(Screen[str | None]):
    """Begins after the step `item`. Returns the reference of the call that a person wants to see."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,d", "leave", "Back", key_display="esc"),
        Binding("left", "change(-1)", "Change", key_display="← →", priority=True),
        Binding("right", "change(1)", "Next change", show=False, priority=True),
        Binding("v", "view", "Compare"),
        Binding("s", "step", "Step"),
        Binding("tab", "app.focus_next", "Diff"),
        Binding("z", "zoom", "Zoom"),
        Binding("question_mark", "app.keys", "Keys"),
    ]
    DEFAULT_CSS = """
    FilesScreen #head { height: 2; }
    FilesScreen #body { layout: vertical; height: 1fr; }
    FilesScreen #body.wide { layout: horizontal; }
    FilesScreen #files { height: 30%; min-height: 4; }
    FilesScreen #body.wide #files { height: 1fr; width: 36; }
    FilesScreen #diff { border-top: solid $panel; }
    FilesScreen #body.wide #diff { border-top: none; border-left: solid $panel; }
    FilesScreen #body.zoomed #files { display: none; }
    """

    def __init__(self, travel: FileTravel, item: Item | None) -> None:
        super().__init__()
        self._travel = travel
        self._position = travel.position_of(item)
        self._files: list[ChangedFile] = []
        self._view: FileView = VIEWS[0]
        # Guards the blob pool: its cache is not thread-safe, and diffs are made in threads.
        self._reading = Lock()

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield ChangeSlider(self._travel.last)
        with Container(id="body"):
            yield LineList(id="files", opens=False)
            yield LineList(id="diff", cursor=False)
        yield Static(id="bar", markup=False)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one("#files").focus()
        self._show(self._position)

    def on_resize(self, event: Resize) -> None:
        self.query_one("#body").set_class(event.size.width >= _WIDE, "wide")
        self._update_texts()

    def _show(self, position: int) -> None:
        self._position = max(0, min(position, self._travel.last))
        chosen = self._chosen
        self._files = self._travel.files(self._position)
        slider = self.query_one(ChangeSlider)
        slider.position = self._position
        slider.refresh()
        self._update_texts()
        self._show_files(self._place_of(chosen))

    def _place_of(self, chosen: ChangedFile | None) -> int:
        """The chosen file, if this step changed it; else the first file that it changed."""
        paths = [one.change.path for one in self._files]
        kept = paths.index(chosen.change.path) if chosen and chosen.change.path in paths else None
        now = [at for at, one in enumerate(self._files) if one.is_now]
        if kept is not None and (kept in now or not now or self._view != VIEWS[0]):
            return kept
        readable = [at for at in now if _is_readable(self._files[at].change)]
        return next(iter(readable or now), 0)

    @work(thread=True, exclusive=True, group="files")
    def _show_files(self, at: int) -> None:
        """Count the lines in a thread: large files take a moment."""
        files = self._files
        with self._reading:
            rows = [self._travel.row(one, 400) for one in files]
        self.app.call_from_thread(self._put_files, files, rows, at)

    def _put_files(self, files: list[ChangedFile], rows: list[Text], at: int) -> None:
        if files is self._files:
            self.query_one("#files", LineList).show(Made(lambda _: rows), at=at)
            self._show_diff()

    @property
    def _chosen(self) -> ChangedFile | None:
        at = self.query_one("#files", LineList).cursor
        return self._files[at] if 0 <= at < len(self._files) else None

    def _show_diff(self) -> None:
        chosen = self._chosen
        self._update_texts()
        if chosen is None:
            text = "Nothing has changed yet." if self._position == 0 else "Only files below .git."
            self.query_one("#diff", LineList).show(Made(lambda _: [Text(text, style="quiet")]))
        else:
            self._read_diff(chosen, self._view)

    @work(thread=True, exclusive=True, group="diff")
    def _read_diff(self, file: ChangedFile, view: FileView) -> None:
        rows = Made(partial(self._lines, file, view))
        rows.fit(self.query_one("#diff", LineList).room)
        self.app.call_from_thread(self._put_diff, file, view, rows)

    def _lines(self, file: ChangedFile, view: FileView, width: int) -> list[Text]:
        with self._reading:
            return list(self._travel.diff(file, view, width))

    def _put_diff(self, file: ChangedFile, view: FileView, rows: Made) -> None:
        if file is self._chosen and view == self._view:
            diff = self.query_one("#diff", LineList)
            diff.show(rows)
            diff.scroll_to(y=0, animate=False)

    def _update_texts(self) -> None:
        """The lines above and below the panes."""
        lines = self._travel.head(self._position, self.size.width - 2)
        head = Text("\n", no_wrap=True, overflow="ellipsis").join(lines)
        self.query_one("#head", Static).update(head)
        count = f"{len(self._files):,} changed file{'' if len(self._files) == 1 else 's'}"
        self.query_one("#bar", Static).update(Text(f"{count} · {self._view}"))

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        if event.lines.id == "files":
            self._show_diff()

    def on_change_slider_sought(self, event: ChangeSlider.Sought) -> None:
        self._show(event.position)

    def action_change(self, by: int) -> None:
        self._show(self._position + by)

    def action_view(self) -> None:
        self._view = VIEWS[(VIEWS.index(self._view) + 1) % len(VIEWS)]
        self._show_diff()

    def action_zoom(self) -> None:
        body = self.query_one("#body").toggle_class("zoomed")
        self.query_one("#diff" if body.has_class("zoomed") else "#files").focus()

    def action_step(self) -> None:
        """Back to the run, at the call that made this change."""
        step = self._travel.steps[self._position - 1] if self._position else None
        call = None if step is None else next(iter(step.calls), step.after)
        self.dismiss(None if call is None else call.ref)

    def action_leave(self) -> None:
        self.dismiss(None)
