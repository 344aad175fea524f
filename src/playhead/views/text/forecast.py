"""What a replay would do, as a table on a terminal. Knows forecasts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from playhead.replay.report.forecast import Forecast
from playhead.views.text.console import console
from playhead.views.text.safe import one_line

_STYLES = {"tape": "ok", "live": "interrupted", "allowed": "interrupted", "blocked": "failed"}


def print_forecast(rows: Sequence[Forecast]) -> None:
    out = console()
    taped = sum(row.calls for row in rows if row.answer == "tape")
    live = sum(row.calls for row in rows if row.answer == "live")
    out.print(Text(f"{taped} calls from the tape, {live} live; nothing was run"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="quiet")
    for heading in ("", "name", "calls", "answered by", "if not on the tape", "effect"):
        table.add_column(heading, justify="right" if heading == "calls" else "left")
    for row in rows:
        table.add_row(
            Text(row.boundary, style=row.boundary),
            Text(one_line(row.name, 40)),
            Text(str(row.calls)),
            Text(row.answer, style=_STYLES.get(row.answer, "")),
            Text(row.miss, style=_STYLES.get(row.miss, "failed")),
            Text(row.effect or "", style="quiet"),
        )
    if rows:
        out.print(table)
