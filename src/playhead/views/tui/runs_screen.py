"""The list of runs: search, filter, choose two to compare. Polls for changes while it is visible."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Static

from playhead import clock
from playhead.errors import PlayheadError
from playhead.library.search import FoundRun, ResultPage
from playhead.views.text import words
from playhead.views.text.run_lists import run_lines
from playhead.views.text.safe import one_line
from playhead.views.tui.run_actions import copy_text, export_run, open_in_browser
from playhead.views.tui.run_source import RunQuery, RunSource
from playhead.views.tui.screen_requests import OpenComparison, OpenRun
from playhead.views.tui.widgets import LineList, Made, Prompt

_STATUSES = (None, "failed", "running", "interrupted", "ok")
# Newest, most expensive, longest, most tokens.
_ORDERS = ("-started", "-cost", "-duration", "-tokens")
_POLL_S = 1.0
# A column on each side of the title.
_PADDING = 2
_RECORD = "Record one: playhead record -- python my_agent.py"


class RunsScreen(Screen[None]):
    """Lists runs; Enter opens one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", tooltip="search prompts, responses, tools and errors"),
        Binding("s", "sort", "Sort", tooltip="by start, cost, duration or tokens"),
        Binding("t", "tag", "Tag", tooltip="add or remove tags"),
        Binding("x", "delete", "Delete", tooltip="delete this run"),
        Binding("e", "export", "Export", tooltip="write the run as a web page into this folder"),
        Binding("b", "browser", "Browser", tooltip="open this run in the browser"),
        Binding("y", "copy", "Copy", tooltip="copy the id of this run"),
        Binding("question_mark", "app.keys", "Keys", tooltip="show or hide these keys"),
        Binding("q", "app.quit", "Quit"),
        # A terminal of 80 columns has no room for more; wider ones show these, too.
        Binding("f", "status", "Filter", tooltip="only failed, running, interrupted or ok runs"),
        Binding("m", "mark", "Mark", tooltip="mark this run for a comparison"),
        Binding("c", "compare", "Compare", tooltip="compare this run with the marked one"),
        Binding("a", "everywhere", "All", tooltip="all projects, or this one alone"),
        Binding("l", "live", "Live", show=False, tooltip="update the list, or stop updating"),
        Binding("r", "reload", "Reload", show=False, tooltip="read the list again"),
    ]

    def __init__(self, source: RunSource) -> None:
        super().__init__()
        self._source = source
        self._query = RunQuery(project=source.project)
        self._page: ResultPage | None = None
        self._marked: Path | None = None
        self._live = True
        self._is_polling = False
        self._revision = -1
        self._problem = ""
        # Gets the next answer of the prompt.
        self._asked: Callable[[str], None] = self._find

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="heading", markup=False)
        yield LineList(id="runs")
        yield Prompt()
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one("#runs").focus()
        self._update_title()
        self._load()
        self.set_interval(_POLL_S, self._poll)

    def on_resize(self) -> None:
        self._update_title()

    def on_screen_resume(self) -> None:
        if self._page is not None:
            self._load()

    def _poll(self) -> None:
        if self._live and self.is_current and not self._is_polling:
            self._is_polling = True
            self._load_if_changed()

    @work(thread=True, group="poll")
    def _load_if_changed(self) -> None:
        if self._source.revision() != self._revision:
            self.app.call_from_thread(self._load)
        else:
            self._is_polling = False

    @work(thread=True, group="load")
    def _load(self) -> None:
        revision, query = self._source.revision(), self._query
        try:
            page, problem = self._source.runs(query), ""
        except PlayheadError as error:
            page, problem = ResultPage(), str(error)
        self.app.call_from_thread(self._show, query, page, problem, revision)

    def _show(self, query: RunQuery, page: ResultPage, problem: str, revision: int) -> None:
        """Show a page of results. The cursor stays on its run, even if its row moved."""
        self._is_polling = False
        if query != self._query:
            return  # outdated: the query has changed since
        before = self.chosen
        self._page, self._problem, self._revision = page, problem, revision
        ids = [found.entry.id for found in page.rows]
        at = ids.index(before.entry.id) if before and before.entry.id in ids else None
        lines = self.query_one("#runs", LineList)
        lines.show(Made(self._lines), at=at)
        self._update_title()

    def _lines(self, width: int) -> Sequence[Text]:
        """Return the rows. The headings are a widget of their own, because they do not scroll."""
        found = self._page.rows if self._page else ()
        if not found:
            self.query_one("#heading", Static).update(Text())
            return [Text(f"  {self._reason()}", style="quiet")]
        shown = [(one.entry, one.summary) for one in found]
        heading, *lines = run_lines(shown, width=width, now_ns=clock.wall_ns())
        self.query_one("#heading", Static).update(heading)
        for one, line in zip(found, lines, strict=True):
            if one.entry.path == self._marked:
                line.stylize("bold reverse", 0, 1)
        return lines

    def _reason(self) -> str:
        """Return why the list is empty."""
        if self._query.words or self._query.status:
            return "No run matches."
        if self._query.project is not None:
            return f"No runs of the project {self._project()}. a shows all projects. {_RECORD}"
        return f"No runs here. {_RECORD}"

    def _update_title(self) -> None:
        parts = ["playhead"]
        if self._page is None:
            parts.append("reading…")
        else:
            more = "more than " if self._page.has_more else ""
            runs = "run" if self._page.total == 1 else "runs"
            parts.append(f"{more}{words.count(self._page.total)} {runs}")
        parts += [self._query.status] if self._query.status else []
        parts += [f"project {self._project()}"] if self._query.project is not None else []
        if self._query.sort != _ORDERS[0]:
            parts.append(f"by {self._query.sort.removeprefix('-')}")
        if self._query.words:
            parts.append(f"“{one_line(self._query.words, 30)}”")
        if self._marked is not None:
            parts.append(f"marked {one_line(self._marked.name, 30)}")
        if self._problem:
            parts.append(one_line(self._problem, 60))
        text = Text(" · ".join(parts), no_wrap=True, overflow="ellipsis")
        if self._live:
            text.append(" ● live", style="running")
        # The folder is the least important: it comes last, and is cut off first.
        text.append(f" · {one_line(_short(self._source.home), 60)}", style="quiet")
        text.truncate(max(20, self.size.width - _PADDING), overflow="ellipsis")
        self.query_one("#title", Static).update(text)

    def _project(self) -> str:
        return "" if self._query.project is None else one_line(Path(self._query.project).name, 20)

    @property
    def chosen(self) -> FoundRun | None:
        at = self.query_one("#runs", LineList).cursor
        rows = self._page.rows if self._page else ()
        return rows[at] if at < len(rows) else None

    def on_line_list_chosen(self) -> None:
        if self.chosen is not None:
            self.post_message(OpenRun(self.chosen.entry.path))

    def _search(self, query: RunQuery) -> None:
        self._query = query
        self._load()
        self._update_title()

    def action_search(self) -> None:
        self._asked = self._find
        self.query_one(Prompt).ask("words to search for; empty: all runs", self._query.words)

    def _find(self, text: str) -> None:
        self._search(dataclasses.replace(self._query, words=text))

    def on_prompt_answered(self, event: Prompt.Answered) -> None:
        self.query_one("#runs").focus()
        self._asked(event.text)

    def on_prompt_cancelled(self) -> None:
        self.query_one("#runs").focus()

    def action_status(self) -> None:
        at = _STATUSES.index(self._query.status)
        status = _STATUSES[(at + 1) % len(_STATUSES)]
        self._search(dataclasses.replace(self._query, status=status))

    def action_sort(self) -> None:
        at = _ORDERS.index(self._query.sort)
        self._search(dataclasses.replace(self._query, sort=_ORDERS[(at + 1) % len(_ORDERS)]))

    def action_tag(self) -> None:
        if (found := self.chosen) is not None:
            path = found.entry.path
            self._asked = lambda text: self._change(lambda: self._tag(path, text))
            self.query_one(Prompt).ask("tags to add: env=ci reviewed; -reviewed removes it")

    def _tag(self, path: Path, text: str) -> None:
        tags = [f"{key}={value}" for key, value in self._source.tag(path, text).items()]
        self.notify(f"Tags: {one_line(', '.join(tags), 200) or 'none'}.", markup=False)

    def action_delete(self) -> None:
        if (found := self.chosen) is None:
            return
        path = found.entry.path

        def answered(text: str) -> None:
            if text.lower() in ("y", "yes"):
                self._change(lambda: self._delete(path))

        self._asked = answered
        self.query_one(Prompt).ask(f"delete {one_line(path.name, 40)} for good? yes or no")

    def _delete(self, path: Path) -> None:
        self._source.delete(path)
        self.notify(f"Deleted {one_line(path.name, 40)}.", markup=False)

    def _change(self, change: Callable[[], None]) -> None:
        try:
            change()
        except PlayheadError as error:
            self.notify(one_line(str(error), 200), severity="error", markup=False)
        self._load()

    def action_export(self) -> None:
        if self.chosen is not None:
            export_run(self, self._source, self.chosen.entry.id)

    def action_browser(self) -> None:
        if self.chosen is not None:
            open_in_browser(self, self._source, self.chosen.entry.id)

    def action_copy(self) -> None:
        if self.chosen is not None:
            copy_text(self, self.chosen.entry.id, self.chosen.entry.id)

    def action_everywhere(self) -> None:
        project = None if self._query.project else self._source.project
        self._search(dataclasses.replace(self._query, project=project))

    def action_mark(self) -> None:
        if self.chosen is not None:
            path = self.chosen.entry.path
            self._marked = None if path == self._marked else path
            self.query_one("#runs", LineList).show(Made(self._lines))
            self._update_title()

    def action_compare(self) -> None:
        if self.chosen is None:
            return
        if self._marked is None or self._marked == self.chosen.entry.path:
            self.notify("Mark one run with m, then press c on another.", markup=False)
            return
        self.post_message(OpenComparison(self._marked, self.chosen.entry.path))


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
