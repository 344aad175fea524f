"""The list of runs: search, filter, choose two to compare. Looks again by itself while runs go on."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
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
from playhead.views.tui.run_source import RunQuery, RunSource
from playhead.views.tui.screen_requests import OpenComparison, OpenRun
from playhead.views.tui.widgets import LineList, Made, Prompt

_STATUSES = (None, "failed", "running", "interrupted", "ok")
_AGAIN_S = 1.0
_NOTHING = "  No runs here. Record one: playhead record -- python my_agent.py"
_NOTHING_FITS = "  No run fits."


class RunsScreen(Screen[None]):
    """What there is; Enter opens one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search"),
        Binding("f", "status", "Filter"),
        Binding("a", "everywhere", "All"),
        Binding("m", "mark", "Mark"),
        Binding("c", "compare", "Compare"),
        Binding("l", "live", "Live"),
        Binding("r", "reload", "Reload", show=False),
        Binding("question_mark", "app.keys", "Keys"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, source: RunSource) -> None:
        super().__init__()
        self._source = source
        self._asked = RunQuery(project=source.project)
        self._page: ResultPage | None = None
        self._marked: Path | None = None
        self._live = True
        self._looking = False
        self._beat = -1
        self._problem = ""

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="heading", markup=False)
        yield LineList(id="runs")
        yield Prompt()
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#runs").focus()
        self._say()
        self._load()
        self.set_interval(_AGAIN_S, self._look)

    def on_screen_resume(self) -> None:
        if self._page is not None:
            self._load()

    def _look(self) -> None:
        if self._live and self.is_current and not self._looking:
            self._looking = True
            self._load_if_changed()

    @work(thread=True, group="look")
    def _load_if_changed(self) -> None:
        if self._source.beat() != self._beat:
            self.app.call_from_thread(self._load)
        else:
            self._looking = False

    @work(thread=True, group="load")
    def _load(self) -> None:
        beat, asked = self._source.beat(), self._asked
        try:
            page, problem = self._source.runs(asked), ""
        except PlayheadError as error:
            page, problem = ResultPage(), str(error)
        self.app.call_from_thread(self._show, asked, page, problem, beat)

    def _show(self, asked: RunQuery, page: ResultPage, problem: str, beat: int) -> None:
        """The cursor stays on its run, wherever that has moved to."""
        self._looking = False
        if asked != self._asked:
            return  # something else has been asked for since
        before = self.chosen
        self._page, self._problem, self._beat = page, problem, beat
        ids = [found.entry.id for found in page.rows]
        at = ids.index(before.entry.id) if before and before.entry.id in ids else None
        lines = self.query_one("#runs", LineList)
        lines.show(Made(self._lines), at=at)
        self._say()

    def _lines(self, width: int) -> Sequence[Text]:
        """Without the headings, which stand above the list and stay."""
        found = self._page.rows if self._page else ()
        if not found:
            self.query_one("#heading", Static).update(Text())
            asked = self._asked.words or self._asked.status
            return [Text(_NOTHING_FITS if asked else _NOTHING, style="quiet")]
        shown = [(one.entry, one.summary) for one in found]
        heading, *lines = run_lines(shown, width=width, now_ns=clock.wall_ns())
        self.query_one("#heading", Static).update(heading)
        for one, line in zip(found, lines, strict=True):
            if one.entry.path == self._marked:
                line.stylize("bold reverse", 0, 1)
        return lines

    def _say(self) -> None:
        said = [f"playhead · {one_line(_short(self._source.home), 40)}"]
        if self._page is None:
            said.append("reading…")
        else:
            said.append(f"{words.count(self._page.total)} runs")
        said += [one for one in (self._asked.status, self._project()) if one]
        if self._asked.words:
            said.append(f"“{one_line(self._asked.words, 30)}”")
        if self._marked is not None:
            said.append(f"marked {one_line(self._marked.name, 30)}")
        if self._problem:
            said.append(one_line(self._problem, 60))
        text = Text(" · ".join(said), no_wrap=True, overflow="ellipsis")
        if self._live:
            text.append(" ●", style="running")
        self.query_one("#title", Static).update(text)

    def _project(self) -> str:
        return "" if self._asked.project is None else one_line(Path(self._asked.project).name, 20)

    @property
    def chosen(self) -> FoundRun | None:
        at = self.query_one("#runs", LineList).cursor
        rows = self._page.rows if self._page else ()
        return rows[at] if at < len(rows) else None

    def on_line_list_chosen(self) -> None:
        if self.chosen is not None:
            self.post_message(OpenRun(self.chosen.entry.path))

    def _ask(self, asked: RunQuery) -> None:
        self._asked = asked
        self._load()
        self._say()

    def action_search(self) -> None:
        self.query_one(Prompt).ask("words to search for; empty: all runs", self._asked.words)

    def on_prompt_answered(self, event: Prompt.Answered) -> None:
        self.query_one("#runs").focus()
        self._ask(dataclasses.replace(self._asked, words=event.text))

    def on_prompt_left(self) -> None:
        self.query_one("#runs").focus()

    def action_status(self) -> None:
        at = _STATUSES.index(self._asked.status)
        status = _STATUSES[(at + 1) % len(_STATUSES)]
        self._ask(dataclasses.replace(self._asked, status=status))

    def action_everywhere(self) -> None:
        project = None if self._asked.project else self._source.project
        self._ask(dataclasses.replace(self._asked, project=project))

    def action_mark(self) -> None:
        if self.chosen is not None:
            path = self.chosen.entry.path
            self._marked = None if path == self._marked else path
            self.query_one("#runs", LineList).show(Made(self._lines))
            self._say()

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
