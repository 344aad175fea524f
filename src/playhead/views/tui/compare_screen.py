"""Two runs compared step by step. `story.compare` makes the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Static

from playhead.errors import PlayheadError
from playhead.story.comparison.compare import Comparison
from playhead.views.text.comparison_text import step_lines, verdict_line
from playhead.views.text.safe import one_line
from playhead.views.text.words import change, shown
from playhead.views.tui.run_source import RunSource
from playhead.views.tui.widgets import LineList, Made

_NAME, _VALUE = 18, 14


class CompareScreen(Screen[None]):
    """Shows the figures of both runs, then the steps that differ."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back", key_display="esc"),
        Binding("n", "next(1)", "Next difference"),
        Binding("N", "next(-1)", "Previous"),
        Binding("a", "all", "All steps"),
        Binding("x", "swap", "Swap"),
        Binding("question_mark", "app.keys", "Keys"),
    ]

    def __init__(self, source: RunSource, left: Path, right: Path) -> None:
        super().__init__()
        self._source = source
        self._paths = (left, right)
        self._comparison: Comparison | None = None
        self._show_equal = False
        self._starts: list[int] = []

    def compose(self) -> ComposeResult:
        yield Static(Text("comparing…"), id="title", markup=False)
        yield LineList(id="steps", opens=False)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one("#steps").focus()
        self._load()

    @work(thread=True)
    def _load(self) -> None:
        paths = self._paths
        try:
            found = self._source.comparison(*paths)
        except PlayheadError as error:
            self.app.call_from_thread(self._show_error, str(error))
            return
        if paths == self._paths:
            self.app.call_from_thread(self._show, found)

    def _show_error(self, problem: str) -> None:
        self.query_one("#title", Static).update(Text(one_line(problem, 400)))

    def _show(self, comparison: Comparison) -> None:
        self._comparison = comparison
        names = f"{one_line(comparison.left, 40)} ↔ {one_line(comparison.right, 40)}"
        self.query_one("#title", Static).update(
            Text(names, no_wrap=True, overflow="ellipsis", style="bold")
        )
        self.query_one("#steps", LineList).show(Made(self._lines))

    def _lines(self, _: int) -> Sequence[Text]:
        comparison = self._comparison
        if comparison is None:
            return ()
        lines = [verdict_line(comparison), Text()]
        lines += [_figure(["", "left", "right", "change"], "quiet")]
        lines += [
            _figure(
                [
                    one.name.replace("_", " "),
                    shown(one, one.left),
                    shown(one, one.right),
                    change(one),
                ]
            )
            for one in comparison.figures
            if one.left or one.right
        ]
        self._starts = []
        for at, step in enumerate(comparison.steps):
            if step.kind == "same" and not self._show_equal:
                continue
            if step.kind != "same":
                lines.append(Text())
                self._starts.append(len(lines))
            lines += step_lines(at, step)
        return lines

    def action_next(self, way: int) -> None:
        steps = self.query_one("#steps", LineList)
        there = [at for at in self._starts if (at - steps.cursor) * way > 0]
        if there:
            steps.move_to(there[0] if way > 0 else there[-1])
        else:
            self.notify("No more differences.", markup=False)

    def action_all(self) -> None:
        self._show_equal = not self._show_equal
        self.query_one("#steps", LineList).show(Made(self._lines))

    def action_swap(self) -> None:
        self._paths = (self._paths[1], self._paths[0])
        self._load()


def _figure(cells: Sequence[str], style: str = "") -> Text:
    name, *values = cells
    shown_values = "".join(f"{value:>{_VALUE}}" for value in values)
    return Text(f"  {name:<{_NAME}}{shown_values}", style=style)
