"""The comparison of two runs on a terminal: figures, then the steps that differ."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from rich.table import Table
from rich.text import Text

from playhead.story.comparison.compare import Comparison, Step
from playhead.views.text.console import console
from playhead.views.text.safe import clean, one_line
from playhead.views.text.words import change, shown

_MARKS = {
    "same": ("=", "quiet"),
    "changed": ("~", "interrupted"),
    "added": ("+", "ok"),
    "removed": ("-", "failed"),
}
_MOST_LINES = 12


def print_comparison(comparison: Comparison, *, every: bool = False, stderr: bool = False) -> None:
    """Print a comparison. `every`: include equal steps."""
    out = console(stderr=stderr)
    out.print(verdict_line(comparison))
    out.print(figures_table(comparison))
    for index, step in enumerate(comparison.steps):
        if step.kind == "same" and not every:
            continue
        for line in step_lines(index, step):
            out.print(line)


def verdict_line(comparison: Comparison) -> Text:
    counts = {kind: sum(step.kind == kind for step in comparison.steps) for kind in _MARKS}
    verdict = (
        ("= same trajectory", "ok") if comparison.same else ("~ trajectories differ", "interrupted")
    )
    counted = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    return Text.assemble(verdict, f" · {counted or 'no steps'}")


def print_first(comparison: Comparison) -> None:
    """Print only the first step that differs."""
    out = console()
    at = comparison.first_difference
    if at is None:
        out.print(Text("= every step is the same", style="ok"))
        return
    out.print(
        Text(f"first difference: step {at + 1} of {len(comparison.steps)}", style="interrupted")
    )
    for line in step_lines(at, comparison.steps[at]):
        out.print(line)


def figures_table(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="quiet")
    for heading in ("", one_line(comparison.left, 30), one_line(comparison.right, 30), "change"):
        table.add_column(heading, justify="left" if not heading else "right")
    for figure in comparison.figures:
        if not figure.left and not figure.right:
            continue
        table.add_row(
            figure.name.replace("_", " "),
            shown(figure, figure.left),
            shown(figure, figure.right),
            change(figure),
        )
    if comparison.result_similarity is not None:
        table.add_row("result similarity", "", "", f"{comparison.result_similarity:.0%}")
    return table


def step_lines(index: int, step: Step) -> Iterator[Text]:
    mark, style = _MARKS[step.kind]
    side = step.right or step.left
    if side is None:
        return
    line = Text.assemble(
        (f"{mark} {index + 1} ", style),
        (side.boundary, side.boundary),
        f" {one_line(side.name, 60)}",
    )
    if step.kind == "changed" and step.similarity is not None:
        line.append(f"  answers {step.similarity:.0%} alike", style="quiet")
    if side.rung:
        line.append(f"  {side.rung}", style="quiet")
    yield line
    if step.kind != "changed" or step.left is None or step.right is None:
        if side.asked:
            yield Text(f"    {one_line(side.asked, 110)}", style="quiet")
        return
    if step.left.name != step.right.name:
        yield Text(f"    - {one_line(step.left.name, 100)}", style="failed")
        yield Text(f"    + {one_line(step.right.name, 100)}", style="ok")
    yield from _texts("request", step.left.asked, step.right.asked)
    yield from _texts("response", step.left.answered, step.right.answered)


def _texts(what: str, before: str, after: str) -> Iterator[Text]:
    if before == after:
        return
    yield Text(f"    {what}", style="quiet")
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))[2:]
    for line in lines[:_MOST_LINES]:
        style = "failed" if line.startswith("-") else "ok" if line.startswith("+") else "quiet"
        yield Text(f"      {one_line(clean(line), 110)}", style=style)
    if len(lines) > _MOST_LINES:
        yield Text(f"      … {len(lines) - _MOST_LINES} more lines", style="quiet")
