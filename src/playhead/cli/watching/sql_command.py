"""`playhead sql`."""

from __future__ import annotations

import csv
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from playhead.cli.common import home_to_read, json_option, overrides, print_json, store_option
from playhead.cli.progress_line import bar
from playhead.views.text.safe import one_line


@click.command("sql")
@click.argument("query")
@click.option(
    "--parquet",
    metavar="DIR|URL",
    help="Query the files of `playhead export --parquet`, not the catalogue.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@json_option
@store_option
def command(
    *, query: str, parquet: str | None, as_csv: bool, as_json: bool, store: Path | None
) -> None:
    """Query all runs of the store with SQL.

    \b
    playhead sql "select * from daily_cost order by cost_usd desc limit 10"
    playhead sql "select tool, sum(failures) / sum(calls) from tools group by all" --csv
    playhead sql "select name, quantile_cont(duration_s, 0.95) from runs group by all" --json
    playhead sql --parquet stats/ "select day, count(*) from runs group by all order by day"

    Tables: runs, calls (summed by run, name and duration), tags; in Parquet files also single_calls, turns and files.
    Views: llm, tools, daily_cost. `describe runs` lists the columns. A query can read these tables and no other file.
    Needs the extra `duckdb`.
    """
    from playhead.analytics.duck import MARKER, ask_catalogue, ask_parquet

    if parquet is not None and "://" in parquet:
        from playhead.remote.folder_copies import download
        from playhead.remote.objects import ObjectFolder

        with TemporaryDirectory(prefix="playhead-parquet-") as scratch:
            download(ObjectFolder(parquet), Path(scratch), MARKER)
            found = ask_parquet(Path(scratch), query)
    elif parquet is not None:
        found = ask_parquet(Path(parquet), query)
    else:
        from playhead.library.engine import database_of
        from playhead.library.indexing import update

        home = home_to_read(store)
        with bar("Reading new runs") as progress:
            update(home, prices=overrides(), progress=progress)
        found = ask_catalogue(database_of(home), query)
    if as_json:
        names = found.columns
        rows = [[_plain(one) for one in row] for row in found.rows]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(found.columns)
        writer.writerows([[_plain(one) for one in row] for row in found.rows])
    else:
        click.echo("\n".join(_lines(found.columns, found.rows)))


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return str(value)


_WIDEST = 60


def _lines(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[str]:
    """Format columns side by side; numbers are right-aligned."""
    cells = [[_cell(one) for one in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)] if names else []
    numeric = [
        any(isinstance(row[at], (int, float, Decimal)) for row in rows) for at in range(len(names))
    ]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in ([*names], *cells)
    ]


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return one_line(str(_plain(value)), _WIDEST)
