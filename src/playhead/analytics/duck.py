"""Query the tables of the catalogue in SQL, and write them as Parquet files. Knows DuckDB; not commands.

DuckDB is an extra, so it is imported when it is first used. A query can read the tables and nothing else: no other
file, no network, no extension.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.analytics.catalogue_tables import (
    NULL,
    PlainTable,
    RunToRead,
    plain_tables,
    runs_to_read,
    write_csv,
)
from playhead.analytics.tape_tables import TAPE_TABLES, TapeRows, write_tape_csvs
from playhead.errors import StoreError, UsageError
from playhead.library.engine import Database

TABLES = ("runs", "calls", "tags", *TAPE_TABLES)
# The state of each run at the time of the export: runs that have not changed are not read again.
STATES = "states.parquet"
MARKER = "playhead.json"
VIEWS: Mapping[str, str] = {
    "llm": "SELECT run, day, name AS model, duration_s, calls, failures, input_tokens, output_tokens, cost_usd "
    "FROM calls WHERE kind = 'model'",
    "tools": "SELECT run, day, name AS tool, duration_s, calls, failures FROM calls WHERE kind = 'tool'",
    "daily_cost": "SELECT c.day, c.name AS model, count(DISTINCT c.run) AS runs, sum(c.calls) AS calls, "
    "sum(c.input_tokens) AS input_tokens, sum(c.output_tokens) AS output_tokens, sum(c.cost_usd) AS cost_usd "
    "FROM calls c WHERE c.kind = 'model' GROUP BY ALL ORDER BY c.day, model",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlAnswer:
    """The result of a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def ask_catalogue(db: Database, query: str) -> SqlAnswer:
    """Query the catalogue as it is now."""
    with tempfile.TemporaryDirectory(prefix="playhead-sql-") as scratch:
        duck = _connected()
        for table in plain_tables(db):
            _load(duck, table, Path(scratch))
    return _answer(duck, query)


def ask_parquet(folder: Path, query: str) -> SqlAnswer:
    """Query the files that `write_parquet` has written."""
    if not (folder / MARKER).is_file():
        raise UsageError(
            f"{folder} has no tables of Playhead. `playhead export --parquet DIR` writes them."
        )
    duck = _connected()
    duck.execute(f"SET allowed_directories = [{_quoted(str(folder.resolve()))}]")
    for name in TABLES:
        # An older version wrote no such table. Tables that a query does not use would cost it 20 ms each.
        if not (folder / name).is_dir() or not _is_used(name, query):
            continue
        files = _quoted(str(folder.resolve() / name / "*" / "*.parquet"))
        duck.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files})")  # noqa: S608  quoted above
    return _answer(duck, query)


def write_parquet(
    db: Database, folder: Path, rows_of: Callable[[RunToRead], TapeRows] = lambda _: {}
) -> dict[str, int]:
    """Write each table into `folder/TABLE/day=…/`, and replace the old files. Return the number of rows by table.

    `rows_of` reads a tape; it is called for runs that are new or have changed since the last export. A reader sees
    either the old files of a table or the new ones. UsageError: the folder has other files.
    """
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARKER).is_file():
        raise UsageError(f"{folder} has other files. Name a new folder, or an earlier export.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    counts: dict[str, int] = {}
    part = folder / f".part-{clock.pid()}"
    try:
        part.mkdir(mode=0o700)
        duck = _connected()
        for table in plain_tables(db):
            counts[table.name] = _load(duck, table, part)
        counts |= _load_tapes(duck, db, folder, part, rows_of)
        for name, count in counts.items():
            target = _quoted(str(part / name))
            # `day` is in the names of the folders and in the files: other readers may ignore the names.
            duck.execute(
                f"COPY {name} TO {target} "
                "(FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day), WRITE_PARTITION_COLUMNS)"
            )
            (part / name).mkdir(exist_ok=True)
            if not count:
                (part / name / "day=none").mkdir()
                empty = _quoted(str(part / name / "day=none" / "data_0.parquet"))
                duck.execute(f"COPY {name} TO {empty} (FORMAT parquet)")
        # First: if this is interrupted, the next export reads all tapes again.
        (folder / STATES).unlink(missing_ok=True)
        for name in TABLES:
            old = part / f"old-{name}"
            if (folder / name).is_dir():
                (folder / name).rename(old)
            (part / name).rename(folder / name)
        duck.execute(f"COPY states TO {_quoted(str(part / STATES))} (FORMAT parquet)")
        (part / STATES).rename(folder / STATES)
        made = {"tables": counts, "written_at": clock.iso(clock.wall_ns())}
        (folder / MARKER).write_text(json.dumps(made) + "\n")
    except OSError as error:
        raise StoreError(f"{folder} cannot be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return counts


def _load_tapes(
    duck: Any, db: Database, folder: Path, part: Path, rows_of: Callable[[RunToRead], TapeRows]
) -> dict[str, int]:
    """Load the tables that come from tapes: the rows of the last export for runs that have not changed, and new rows
    for the others. Return the number of rows by table.
    """
    before: dict[str, str] = {}
    if (folder / STATES).is_file():
        with suppress(
            import_module("duckdb").Error
        ):  # another version wrote it: then all tapes are read
            ask = f"SELECT run, state FROM read_parquet({_quoted(str(folder / STATES))})"  # noqa: S608  quoted
            before = dict(duck.execute(ask).fetchall())
    now = list(runs_to_read(db))
    fresh = [one for one in now if one.state is None or before.get(one.id) != one.state]
    stale = {one.id for one in fresh}
    known = PlainTable(
        name="states",
        columns={"run": "VARCHAR", "state": "VARCHAR"},
        rows=lambda: iter([(one.id, one.state) for one in now if one.state is not None]),
    )
    _load(duck, known, part)
    kept = PlainTable(
        name="kept",
        columns={"run": "VARCHAR"},
        rows=lambda: iter([(one.id,) for one in now if one.id not in stale]),
    )
    _load(duck, kept, part)
    counts = {}
    for name, path in write_tape_csvs(fresh, rows_of, part).items():
        _load_csv(duck, name, TAPE_TABLES[name], path)
        if len(stale) < len(now):
            old = _quoted(str(folder / name / "*" / "*.parquet"))
            columns = ", ".join(TAPE_TABLES[name])
            duck.execute(
                f"INSERT INTO {name} SELECT {columns} FROM read_parquet({old}) SEMI JOIN kept USING (run)"  # noqa: S608  quoted
            )
        (counts[name],) = duck.execute(f"SELECT count(*) FROM {name}").fetchone()  # noqa: S608  a name of ours
    return counts


def _connected() -> Any:
    try:
        library = import_module("duckdb")
    except ImportError:
        raise UsageError(
            "SQL and Parquet need the extra `duckdb`: pip install 'playhead[duckdb]'."
        ) from None
    duck = library.connect(":memory:")
    # DuckDB extensions that are installed on this machine must have no influence.
    duck.execute("SET autoinstall_known_extensions = false")
    return duck


def _load(duck: Any, table: PlainTable, scratch: Path) -> int:
    path = scratch / f"{table.name}.csv"
    count = write_csv(table, path)
    _load_csv(duck, table.name, table.columns, path)
    return count


def _load_csv(duck: Any, table: str, types: Mapping[str, str], path: Path) -> None:
    columns = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, kind in types.items())
    duck.execute(
        f"CREATE TABLE {table} AS SELECT * FROM read_csv({_quoted(str(path))}, header = false, "  # noqa: S608  quoted
        f"columns = {{{columns}}}, nullstr = {_quoted(NULL)}, auto_detect = false, delim = ',', quote = '\"', "
        "escape = '\"', max_line_size = 16777216)"
    )
    os.unlink(path)


def _answer(duck: Any, query: str) -> SqlAnswer:
    for name, select in VIEWS.items():
        duck.execute(f"CREATE VIEW {name} AS {select}")
    duck.execute("SET enable_external_access = false")
    duck.execute("SET lock_configuration = true")
    errors = import_module("duckdb").Error
    try:
        found = duck.execute(query)
        if found is None:  # DuckDB returns nothing for a text without a statement
            raise UsageError('The query is empty. Example: `playhead sql "select * from runs"`.')
        columns: Sequence[Any] = found.description or ()
        rows = found.fetchall() if columns else []
    except errors as error:
        raise UsageError(f"{error}{_advice(str(error))}") from None
    finally:
        duck.close()
    return SqlAnswer(columns=tuple(str(one[0]) for one in columns), rows=rows)


def _is_used(table: str, query: str) -> bool:
    """Return whether a query may use a table. Views use the tables of the catalogue."""
    said = query.lower()
    return table not in TAPE_TABLES or table in said or "show" in said or "schema" in said


def _advice(said: str) -> str:
    missing = next(
        (one for one in TAPE_TABLES if f"Table with name {one} does not exist" in said), None
    )
    if missing is None:
        return ""
    return (
        f"\n\nThe table {missing} is in Parquet files only: `playhead export --parquet DIR`, then "
        "`playhead sql --parquet DIR`."
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
