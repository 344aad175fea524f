"""The catalogue as three plain tables: runs, calls and tags. Knows the catalogue; not DuckDB.

Calls are summed in the catalogue by run, name and duration (within 5 %), so that a table of a million runs stays small.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sqlalchemy import select

from playhead.library.digest import seconds_in
from playhead.library.engine import Database, calls, runs, tags

_AT_ONCE = 10_000
# CSV has no null; no value of ours is ever this text.
NULL = "\\N"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainTable:
    """A table with the types of its columns, as DuckDB names them, and its rows."""

    name: str
    columns: dict[str, str]
    rows: Callable[[], Iterator[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunToRead:
    """A run whose tape is read. `state`: changes with the tape; None: the catalogue does not know it yet."""

    id: str
    started_ns: int
    state: str | None


def runs_to_read(db: Database) -> Iterator[RunToRead]:
    """Return all runs, in the order of their age."""
    ask = select(runs.c.id, runs.c.started_ns, runs.c.state).order_by(runs.c.number)
    for run, started_ns, state in _read(db, ask):
        yield RunToRead(id=run, started_ns=started_ns, state=state)


def plain_tables(db: Database) -> list[PlainTable]:
    """Return all tables. Each has the column `day`, in UTC, by which the files are divided."""
    return [
        PlainTable(name="runs", columns=_RUNS, rows=lambda: _runs(db)),
        PlainTable(name="calls", columns=_CALLS, rows=lambda: _calls(db)),
        PlainTable(name="tags", columns=_TAGS, rows=lambda: _tags(db)),
    ]


def write_csv(table: PlainTable, path: Path) -> int:
    """Write the rows for DuckDB's loader. Return their number."""
    count = 0
    with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        writer = csv.writer(file)
        for row in table.rows():
            writer.writerow([NULL if one is None else one for one in row])
            count += 1
    return count


_RUNS = {
    "id": "VARCHAR",
    "day": "DATE",
    "started": "TIMESTAMP",
    "name": "VARCHAR",
    "project": "VARCHAR",
    "status": "VARCHAR",
    "duration_s": "DOUBLE",
    "tokens": "BIGINT",
    "cost_usd": "DOUBLE",
    "failures": "BIGINT",
    "failed_turns": "BIGINT",
    "replay_of": "VARCHAR",
    "golden": "BOOLEAN",
    "keep": "BOOLEAN",
}
_CALLS = {
    "run": "VARCHAR",
    "day": "DATE",
    "kind": "VARCHAR",
    "name": "VARCHAR",
    "duration_s": "DOUBLE",
    "calls": "BIGINT",
    "failures": "BIGINT",
    "input_tokens": "BIGINT",
    "output_tokens": "BIGINT",
    "cost_usd": "DOUBLE",
}
_TAGS = {"run": "VARCHAR", "day": "DATE", "key": "VARCHAR", "value": "VARCHAR"}


def _runs(db: Database) -> Iterator[tuple[Any, ...]]:
    names = ("name", "project", "status", "duration_s", "tokens", "cost_usd", "failures")
    more = ("failed_turns", "replay_of", "golden", "keep")
    ask = select(runs.c.id, runs.c.started_ns, *(runs.c[one] for one in (*names, *more)))
    for run, started_ns, *rest in _read(db, ask.order_by(runs.c.number)):
        began = moment_of(started_ns)
        yield (run, began.date(), began.replace(tzinfo=None), *rest)


def _calls(db: Database) -> Iterator[tuple[Any, ...]]:
    columns = ("kind", "name", "bucket", "calls", "failures", "input_tokens", "output_tokens")
    ask = select(runs.c.id, runs.c.started_ns, *(calls.c[one] for one in (*columns, "cost_usd")))
    joined = ask.join(runs, runs.c.number == calls.c.run).order_by(calls.c.run)
    for run, started_ns, kind, name, bucket, *rest in _read(db, joined):
        took = round(seconds_in(bucket), 6) if bucket >= 0 else None
        yield (run, moment_of(started_ns).date(), kind, name, took, *rest)


def _tags(db: Database) -> Iterator[tuple[Any, ...]]:
    ask = select(runs.c.id, runs.c.started_ns, tags.c.key, tags.c.value)
    for run, started_ns, *rest in _read(db, ask.join(runs, runs.c.number == tags.c.run)):
        yield (run, moment_of(started_ns).date(), *rest)


def _read(db: Database, ask: Any) -> Iterable[Any]:
    with db.reading() as connection:
        yield from connection.execution_options(yield_per=_AT_ONCE).execute(ask)


def moment_of(wall_ns: int) -> datetime:
    """Return a time. A damaged manifest may contain any value."""
    try:
        return datetime.fromtimestamp(wall_ns / 1e9, timezone.utc)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(0, timezone.utc)
