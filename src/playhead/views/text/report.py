"""A replay's report on a terminal: the verdict first, then coverage, then each divergence. Knows the
report; reads no tape.
"""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from playhead.replay.nearest import around
from playhead.replay.report import RUNGS, Report
from playhead.views.text import words
from playhead.views.text.console import console
from playhead.views.text.safe import clean, one_line
from playhead.views.text.values import compact

_MOST_SHOWN = 5


def print_report(report: Report) -> None:
    """To stderr: stdout is the program's."""
    out = console(stderr=True)
    same = report.verdict == "identical"
    recorded, replayed = report.duration_s.get("recorded"), report.duration_s.get("replayed")
    out.print(
        Text.assemble(
            ("✓ identical" if same else "✗ diverged", "ok" if same else "failed"),
            f" · replay of {report.run} · {words.duration(replayed)} instead of {words.duration(recorded)}",
        )
    )
    if report.coverage:
        out.print(_coverage(report))
    for number, one in enumerate(report.divergences[:_MOST_SHOWN], 1):
        out.print()
        for line in _divergence(number, one):
            out.print(line)
    more = len(report.divergences) - _MOST_SHOWN
    if more > 0:
        out.print(Text(f"… and {more} more; --report FILE.json has all of them", style="quiet"))
    for note in report.notes:
        out.print(Text(one_line(note, 200), style="quiet"))


def _coverage(report: Report) -> Table:
    shown = [rung for rung in RUNGS if any(row.get(rung) for row in report.coverage.values())]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="quiet")
    table.add_column("")
    for rung in shown:
        table.add_column(rung, justify="right")
    for boundary, row in report.coverage.items():
        cells = [
            Text(str(row.get(rung) or "·"), style=_style(rung, row.get(rung) or 0))
            for rung in shown
        ]
        table.add_row(Text(boundary, style=boundary), *cells)
    return table


def _style(rung: str, number: int) -> str:
    if not number:
        return "quiet"
    return (
        "failed"
        if rung in ("missed", "unused", "blocked")
        else "ok"
        if rung == "exact"
        else "interrupted"
    )


def _divergence(number: int, one: dict[str, Any]) -> list[Text]:
    kind = one.get("kind")
    if kind not in ("missed", "unused"):
        return [Text(f"{number}. {clean(str(one.get('detail') or kind))}", style="failed")]
    asked = one_line(f"{one.get('boundary')} {one.get('name')}", 100)
    if kind == "unused":
        return [
            Text(f"{number}. taped call {one.get('step')} was never made: {asked}", style="failed"),
            Text(
                f"   then at {one_line(str(one.get('at') or '?'), 100)}, lane {one_line(str(one.get('lane')), 40)}",
                style="quiet",
            ),
        ]
    lines = [
        Text(f"{number}. no taped call matches step {one.get('step')}: {asked}", style="failed"),
        Text(
            f"   asked at {one_line(str(one.get('at') or '?'), 100)}, lane {one_line(str(one.get('lane')), 40)}",
            style="quiet",
        ),
    ]
    near = one.get("nearest")
    if isinstance(near, dict):
        lines += _nearest(near)
    if one.get("advice"):
        lines.append(Text(f"   {one_line(str(one['advice']), 300)}", style="why"))
    return lines


def _nearest(near: dict[str, Any]) -> list[Text]:
    served = " (served already)" if near.get("served") else ""
    lines = [
        Text(
            f"   nearest is taped call {near.get('number')}{served}: {one_line(str(near.get('name')), 80)}"
        )
    ]
    found = near.get("differences") or []
    if not found:
        lines.append(
            Text(
                "     it asks the same: the tape has it once less than the code of today asks for it",
                style="quiet",
            )
        )
    for one in found[:_MOST_SHOWN]:
        taped, asked = around(_plain(one.get("taped")), _plain(one.get("asked")))
        lines.append(Text(f"     {one_line(str(one.get('path')), 100)}", style="bold"))
        lines.append(Text(f"       - {one_line(taped, 200)}", style="failed"))
        lines.append(Text(f"       + {one_line(asked, 200)}", style="ok"))
    return lines


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else compact(value)
