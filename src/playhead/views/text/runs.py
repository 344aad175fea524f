"""The list of runs as a table that fits 80 columns. Knows entries and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from playhead.library.catalogue import Entry
from playhead.library.rows import note_of
from playhead.library.summary import Summary
from playhead.views.text import words
from playhead.views.text.console import GLYPHS, console, print_line, width_of
from playhead.views.text.safe import one_line

_HEADINGS = ("RUN", "NAME", "AGE", "TOOK", "CALLS", "TOKENS", "COST", "WHY, TAGS")
_STYLES = ("default", "name", "quiet", "default", "default", "default", "money", "quiet")
_LEFT = {0, 1, 7}
_GAP = 2
# The narrowest that a name, and what is said about a run at the end of its line, may get.
_NAME = 12
_WHY = 24


def print_runs(
    rows: Sequence[tuple[Entry, Summary]], *, home: Path, everywhere: bool, now_ns: int
) -> None:
    out = console()
    width = width_of(out)
    if not rows:
        place = str(home) if everywhere else "this project"
        out.print(f"No runs in {place}.")
        out.print("Record one: playhead record -- python my_agent.py")
        return
    for line in run_lines(rows, width=width, now_ns=now_ns):
        print_line(out, line)
    for entry, summary in rows:
        if entry.problem:
            out.print(Text(f"! {one_line(entry.problem, 400)}", style="interrupted"))
        elif summary.lost:
            said = (
                f"! {entry.id} lost {words.count(summary.lost)} events: `playhead show` says where"
            )
            out.print(Text(one_line(said, 400), style="interrupted"))


def run_lines(rows: Sequence[tuple[Entry, Summary]], *, width: int, now_ns: int) -> list[Text]:
    """The headings, then a line for each run."""
    cells = [_cells(entry, summary, now_ns) for entry, summary in rows]
    widths = _widths([_HEADINGS, *cells], width)
    lines = [_line(_HEADINGS, widths, ["quiet"] * len(_HEADINGS))]
    for (entry, _), row in zip(rows, cells, strict=True):
        line = Text.assemble((f"{GLYPHS[entry.status]} ", entry.status))
        lines.append(line.append_text(_line(row, widths, _STYLES)[2:]))
    return lines


def _cells(entry: Entry, summary: Summary, now_ns: int) -> tuple[str, ...]:
    manifest = entry.manifest
    seconds = manifest.duration_s if manifest.duration_s is not None else summary.duration_s
    return (
        f"  {one_line(entry.id, 60)}",
        ("↻ " if manifest.replay_of else "") + one_line(manifest.name, 60),
        words.age(manifest.started_ns, now_ns) if manifest.started_ns else "–",
        words.duration(seconds),
        words.short(summary.calls),
        words.short(summary.tokens),
        words.money(summary.cost_usd, at_least=summary.unpriced > 0),
        _remark(entry, summary),
    )


def _remark(entry: Entry, summary: Summary) -> str:
    """What somebody noted, why it failed, else what it was tagged with."""
    said = [summary.failure] if summary.failure else []
    if entry.manifest.replay_of:
        said.append(f"replay of {entry.manifest.replay_of}")
    if summary.last_seam and entry.status in ("failed", "interrupted"):
        said.append(f"after seam {summary.last_seam}")
    if note := note_of(entry.manifest):
        said.insert(0, note)
    if not said:
        said = [f"{key}={value}" for key, value in entry.manifest.tags.items()]
    return one_line(" · ".join((["kept"] if entry.manifest.keep else []) + said), 200)


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """As wide as the widest; names give way, and remarks are only there where room is left."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEADINGS))]
    fixed = sum(widths) - widths[1] - widths[-1] + _GAP * (len(widths) - 2)
    room = width - fixed
    if room - min(widths[1], 24) - _GAP < _WHY or widths[-1] <= len(_HEADINGS[-1]):
        return [widths[0], max(_NAME, min(widths[1], room)), *widths[2:-1]]
    name = min(widths[1], 24)
    return [widths[0], name, *widths[2:-1], min(widths[-1], room - name - _GAP)]


def _line(cells: Sequence[str], widths: Sequence[int], styles: Sequence[str]) -> Text:
    line = Text()
    for at, (cell, width, style) in enumerate(zip(cells, widths, styles, strict=False)):
        text = Text(cell, style=style)
        if text.cell_len > width:
            text.truncate(width, overflow="ellipsis")
        space = " " * (width - text.cell_len)
        line.append(" " * _GAP if at else "")
        if at in _LEFT:
            line.append_text(text).append(space if at < len(widths) - 1 else "")
        else:
            line.append(space).append_text(text)
    return line
