"""One run: its outcome, its tree, and the details of the line under the cursor. Updates while the run is running."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Footer, Static

from playhead.errors import PlayheadError
from playhead.story import Item, Story
from playhead.views.play.frames import frames_of
from playhead.views.text.safe import one_line
from playhead.views.text.story import head_of
from playhead.views.tui.file_lines import FileTravel
from playhead.views.tui.run_actions import copy_text, export_run, open_in_browser
from playhead.views.tui.run_lines import TreeRows, item_lines
from playhead.views.tui.run_source import RunSource
from playhead.views.tui.screen_requests import OpenFiles, OpenPlayer
from playhead.views.tui.widgets import LineList, Made, Prompt

_POLL_S = 0.5
_WIDE = 120
_HEAD_LINES = 4
# A column on each side.
_HEAD_PADDING = 2
# The width for copied text: its lines end where the recorded text has line ends.
_UNWRAPPED = 1_000_000


class RunScreen(Screen[None]):
    """The tree above the details; side by side on a wide terminal."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back", key_display="esc"),
        Binding(
            "f", "failure", "Failure", tooltip="the first failure or divergence, then the next"
        ),
        Binding("p", "play", "Play", tooltip="play the run with its timing"),
        Binding("d", "files", "Files", tooltip="the files as they were after this step"),
        Binding("slash", "find", "Find", tooltip="find a line with a text"),
        Binding("n", "again(False)", "Next", show=False, tooltip="the next line with that text"),
        Binding("N", "again(True)", "Previous", show=False, tooltip="the previous one"),
        Binding("y", "copy", "Copy", tooltip="copy the details of this step"),
        Binding("e", "export", "Export", tooltip="write the run as a web page into this folder"),
        Binding("b", "browser", "Browser", tooltip="open this run in the browser"),
        Binding(
            "left", "fold", "Fold", show=False, tooltip="hide the lines below, or go to the parent"
        ),
        Binding("right", "unfold", "Unfold", show=False, tooltip="show the lines below"),
        Binding("o", "output", "Output", show=False, tooltip="show what the program printed"),
        Binding("l", "live", "Live", show=False, tooltip="follow a running run, or stop following"),
        Binding("question_mark", "app.keys", "Keys", tooltip="show or hide these keys"),
        # A terminal of 80 columns has no room for more.
        Binding("z", "zoom", "Zoom", tooltip="show the details alone"),
    ]
    DEFAULT_CSS = """
    RunScreen #body { layout: vertical; height: 1fr; }
    RunScreen #body.wide { layout: horizontal; }
    RunScreen #detail { border-top: solid $panel; }
    RunScreen #body.wide #detail { border-top: none; border-left: solid $panel; }
    RunScreen #body.zoomed #tree { display: none; }
    RunScreen #head { height: auto; max-height: 4; }
    """

    def __init__(self, source: RunSource, path: Path) -> None:
        super().__init__()
        self._source = source
        self._path = path
        self._rows: TreeRows | None = None
        self._state = ""
        self._live = True
        self._is_polling = False
        self._output = False
        self._words = ""
        self._shown: str | None = None

    def compose(self) -> ComposeResult:
        yield Static(Text(f"reading {one_line(self._path.name, 60)}…"), id="head", markup=False)
        with Container(id="body"):
            yield LineList(id="tree")
            yield LineList(id="detail", cursor=False)
        yield Prompt()
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one("#tree").focus()
        self._load(last=False)
        self.set_interval(_POLL_S, self._poll)

    def on_resize(self, event: Resize) -> None:
        self.query_one("#body").set_class(event.size.width >= _WIDE, "wide")
        self._update_head()

    @property
    def story(self) -> Story | None:
        return self._rows.story if self._rows is not None else None

    def _poll(self) -> None:
        is_running = self.story is not None and self.story.status == "running"
        if self._live and is_running and self.is_current and not self._is_polling:
            self._is_polling = True
            self._load_if_changed()

    @work(thread=True, group="poll")
    def _load_if_changed(self) -> None:
        if self._source.state(self._path) != self._state:
            self.app.call_from_thread(self._load, last=True)
        else:
            self._is_polling = False

    @work(thread=True, group="load")
    def _load(self, *, last: bool) -> None:
        """Load the run. `last`: a cursor on the last line moves to the new last line."""
        state = self._source.state(self._path)
        try:
            story = self._source.story(self._path)
        except PlayheadError as error:
            self.app.call_from_thread(self._show_error, str(error))
            return
        rows = TreeRows(story, output=self._output)
        # In this thread, because 100,000 lines take a second.
        rows.fit(self.query_one("#tree", LineList).room)
        self.app.call_from_thread(self._show, rows, state, last=last)

    def _show_error(self, problem: str) -> None:
        self._is_polling = False
        self.query_one("#head", Static).update(Text(one_line(problem, 400)))

    def _show(self, rows: TreeRows, state: str, *, last: bool) -> None:
        self._is_polling = False
        if rows.output != self._output:
            return  # outdated: the option has changed since
        tree = self.query_one("#tree", LineList)
        before = self._rows
        at_end = before is not None and tree.cursor >= len(before) - 1
        ref = item.ref if before and (item := before.item(tree.cursor)) else None
        if before is not None:
            rows.folded = before.folded
        self._rows, self._state, self._shown = rows, state, None
        rows.fit(tree.room)
        at = None if ref is None else rows.place_of(ref) if not rows.folded else tree.cursor
        tree.show(rows, at=len(rows) - 1 if last and at_end else at)
        self._update_head()
        self._show_detail()

    def _update_head(self) -> None:
        if self.story is not None:
            room = self.size.width - _HEAD_PADDING
            head = list(head_of(self.story, room))[:_HEAD_LINES]
            for line in head:
                line.truncate(room, overflow="ellipsis")
            self.query_one("#head", Static).update(Text("\n").join(head))

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        if event.lines.id == "tree":
            self._show_detail()

    def on_line_list_chosen(self) -> None:
        self.query_one("#detail").focus()

    def _show_detail(self) -> None:
        """Show the item under the cursor in the other pane."""
        rows = self._rows
        item = None if rows is None else rows.item(self.query_one("#tree", LineList).cursor)
        if rows is None or item is None or item.ref == self._shown:
            return
        self._shown = item.ref
        detail = self.query_one("#detail", LineList)
        detail.show(Made(partial(item_lines, rows.story, item)))
        detail.scroll_to(y=0, animate=False)

    def _go_to(self, place: int | None, message: str) -> None:
        if place is None:
            self.notify(message, markup=False)
            return
        tree = self.query_one("#tree", LineList)
        tree.refresh_rows()
        tree.move_to(place)
        self._show_detail()

    def action_failure(self) -> None:
        """Go to the first failure, or to the next one if the cursor is on a failure."""
        if self._rows is not None:
            tree = self.query_one("#tree", LineList)
            failure = self._rows.story.failure
            message = "Nothing failed in this run."
            if failure is not None:
                error = one_line(f"{failure.type}: {failure.message}", 200)
                message = f"No step failed. The program ended with {error}"
            self._go_to(self._rows.next_failure(tree.cursor), message)

    def action_fold(self) -> None:
        if self._rows is not None:
            self._go_to(self._rows.fold(self.query_one("#tree", LineList).cursor), "")

    def action_unfold(self) -> None:
        tree = self.query_one("#tree", LineList)
        if self._rows is not None:
            self._rows.unfold(tree.cursor)
            tree.refresh_rows()

    def action_find(self) -> None:
        self.query_one(Prompt).ask("find a line; n and N repeat", self._words)

    def on_prompt_answered(self, event: Prompt.Answered) -> None:
        self.query_one("#tree").focus()
        self._words = event.text
        self.action_again(back=False)

    def on_prompt_cancelled(self) -> None:
        self.query_one("#tree").focus()

    def action_again(self, back: bool) -> None:  # noqa: FBT001  Textual calls it by position
        if self._words and not self.query_one("#tree", LineList).find(self._words, back=back):
            self.notify(f"No line contains “{one_line(self._words, 40)}”.", markup=False)

    def action_copy(self) -> None:
        """Copy the details of the item under the cursor, unwrapped."""
        rows = self._rows
        item = None if rows is None else rows.item(self.query_one("#tree", LineList).cursor)
        if rows is not None and item is not None:
            lines = item_lines(rows.story, item, _UNWRAPPED)
            text = "\n".join(line.plain.rstrip() for line in lines)
            copy_text(self, text, f"the details of {lines[0].plain}")

    def action_export(self) -> None:
        export_run(self, self._source, self._path.name)

    def action_browser(self) -> None:
        open_in_browser(self, self._source, self._path.name)

    def action_zoom(self) -> None:
        body = self.query_one("#body").toggle_class("zoomed")
        self.query_one("#detail" if body.has_class("zoomed") else "#tree").focus()

    def action_output(self) -> None:
        self._output = not self._output
        self._load(last=False)

    def action_live(self) -> None:
        self._live = not self._live
        self.notify("Following the run." if self._live else "Not following the run.", markup=False)

    def action_play(self) -> None:
        if self.story is not None:
            self._load_player(self.story)

    def action_files(self) -> None:
        """Show the files as they were after the step under the cursor."""
        if self.story is None or self._rows is None:
            return
        if not self.story.file_events:
            self.notify("This run changed no files, or was recorded without them.", markup=False)
            return
        self._load_files(self.story, self._rows.item(self.query_one("#tree", LineList).cursor))

    @work(thread=True, group="files")
    def _load_files(self, story: Story, item: Item | None) -> None:
        try:
            travel = FileTravel(story, self._source.files(self._path))
        except PlayheadError as error:
            self.app.call_from_thread(self.notify, one_line(str(error), 200), markup=False)
            return
        self.post_message(OpenFiles(travel, item, self._return_to))

    def _return_to(self, ref: str | None) -> None:
        """The Files screen was closed. `ref`: the call to show; None: stay here."""
        if ref is not None and self._rows is not None:
            self._go_to(self._rows.place_of(ref), "")

    @work(thread=True, group="play")
    def _load_player(self, story: Story) -> None:
        self.post_message(OpenPlayer(frames_of(story)))
