"""The list of runs as a table of 80 columns. Knows entries and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from playhead import clock
from playhead.library.catalogue import Entry
from playhead.library.summary import Summary
from playhead.views.text import words
from playhead.views.text.console import GLYPHS, console
from playhead.views.text.safe import one_line


def print_runs(rows: Sequence[tuple[Entry, Summary]], *, home: Path, everywhere: bool) -> None:
    out = console()
    if not rows:
        place = str(home) if everywhere else "this project"
        out.print(f"No runs in {place}. Record one: playhead record -- python my_agent.py")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="quiet")
    table.add_column("RUN", no_wrap=True)
    table.add_column("NAME", overflow="ellipsis", no_wrap=True, max_width=18)
    for heading in ("WHEN", "TOOK", "CALLS", "TOKENS", "COST"):
        table.add_column(heading, justify="right", no_wrap=True)
    now = clock.wall_ns()
    for entry, summary in rows:
        manifest = entry.manifest
        seconds = manifest.duration_s if manifest.duration_s is not None else summary.duration_s
        table.add_row(
            Text.assemble((GLYPHS[entry.status] + " ", entry.status), one_line(entry.id, 40)),
            one_line(manifest.name, 18),
            words.ago(manifest.started_ns, now) if manifest.started_ns else "–",
            words.duration(seconds),
            words.short(summary.calls),
            words.short(summary.tokens),
            Text(words.money(summary.cost_usd, at_least=summary.unpriced > 0), style="money"),
        )
    out.print(table)
    for entry, summary in rows:
        if entry.problem:
            out.print(Text(f"! {one_line(entry.problem, 200)}", style="interrupted"))
        elif summary.lost:
            out.print(Text(f"! {entry.id} lost {summary.lost} events; see `playhead show`", style="interrupted"))
