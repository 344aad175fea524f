"""Write rows and digests to the catalogue, and read back what is there. Knows the tables; does not know where
rows and digests come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Dialect,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from playhead.library.digest import Digest
from playhead.library.engine import Database, calls, documents, facts, runs, tags
from playhead.library.fulltext import SCOPES
from playhead.library.run_rows import RunRow, Summary, encode_summary, is_near, numbered, whole
from playhead.library.text_index import index_of

T = TypeVar("T")
# SQLite accepts 32,766 values in one statement; older versions accept 999.
_AT_ONCE = 900
_COLUMNS = (
    *("id", "stamp", "started_ns", "status", "claims", "project", "name"),
    *("replay_of", "keep", "golden", "duration_s", "problem"),
)
_VERSION = "version"


class CoreLedger:
    """Implements `catalogue.Ledger` on any database that SQLAlchemy supports."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def version(self) -> str | None:
        with self._db.reading() as connection:
            ask = select(facts.c.value).where(facts.c.name == _VERSION)
            return connection.execute(ask).scalar_one_or_none()

    def stamps(self) -> dict[str, str]:
        with self._db.reading() as connection:
            return dict(connection.execute(select(runs.c.id, runs.c.stamp)).all())

    def claiming(self) -> dict[str, tuple[str, str]]:
        with self._db.reading() as connection:
            ask = select(runs.c.id, runs.c.stamp, runs.c.status).where(runs.c.claims)
            return {run: (stamp, status) for run, stamp, status in connection.execute(ask)}

    def stamps_of(self, ids: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        with self._db.reading() as connection:
            for some in batches(ids, _AT_ONCE):
                ask = select(runs.c.id, runs.c.stamp).where(runs.c.id.in_(some))
                found.update(connection.execute(ask).all())
        return found

    def update(self, rows: Sequence[RunRow], gone: Iterable[str], version: str | None) -> None:
        with self._db.writing() as connection:
            put_rows(connection, rows, list(gone))
            connection.execute(delete(facts).where(facts.c.name == _VERSION))
            connection.execute(insert(facts), {"name": _VERSION, "value": version})


def put_rows(connection: Connection, rows: Sequence[RunRow], gone: Sequence[str] = ()) -> None:
    """Write new and changed rows, and delete the rows of runs that no longer exist. A changed run must be read
    again; until then a search uses the text that was read last.
    """
    placed, known = _placed(connection, rows, gone)
    there = set(known.values())
    forget(
        connection,
        {known[row.id] for at, row in placed if known.get(row.id, at) != at}
        | {known[run] for run in gone if run in known},
    )
    kept = [at for at, _ in placed if at in there]
    _drop(connection, runs, runs.c.number, kept)
    _drop(connection, tags, tags.c.run, kept)
    _insert(connection, runs, [_values(at, row) for at, row in placed])
    _insert(connection, tags, _tags(placed))
    fresh = [{"run": at, "manifest": row.manifest} for at, row in placed if at not in there]
    _insert(connection, documents, fresh)
    old = [{"at": at, "raw": row.manifest} for at, row in placed if at in there]
    _many(connection, _NEW_MANIFEST, old)


def put_whole(connection: Connection, read: Sequence[tuple[RunRow, str, Digest]]) -> None:
    """Write rows with their digests, and replace everything that is known about these runs."""
    placed, known = _placed(connection, [row for row, _, _ in read])
    forget(connection, known.values())
    made = [(at, state, digest) for (at, _), (_, state, digest) in zip(placed, read, strict=True)]
    rows = [
        {**_values(at, row), **_columns(state, digest.summary, row.duration_s)}
        for (at, row), (_, state, digest) in zip(placed, made, strict=True)
    ]
    _insert(connection, runs, rows)
    _insert(connection, tags, _tags(placed))
    shown = [
        {"run": at, "manifest": row.manifest, "summary": encode_summary(state, digest.summary)}
        for (at, row), (_, state, digest) in zip(placed, made, strict=True)
    ]
    _insert(connection, documents, shown)
    _put_contents(connection, made)


def put_digests(connection: Connection, read: Sequence[tuple[int, str, Digest]]) -> None:
    """Write digests by number, each with the state of the tape from which it was made. A run that was deleted while
    it was read leaves nothing behind.
    """
    there = _there(connection, [number for number, _, _ in read])
    made = [one for one in read if one[0] in there]
    _drop(connection, calls, calls.c.run, list(there))
    index_of(connection.dialect.name).drop(connection, list(there))
    rows = [
        {"at": at, **{f"new_{name}": value for name, value in _columns(state, one.summary).items()}}
        for at, state, one in made
    ]
    _many(connection, _NEW_COLUMNS, rows)
    shown = [{"at": at, "raw": encode_summary(state, one.summary)} for at, state, one in made]
    _many(connection, _NEW_SUMMARY, shown)
    _put_contents(connection, made)


_OF_ONE = documents.c.run == bindparam("at")
_NEW_MANIFEST = update(documents).where(_OF_ONE).values(manifest=bindparam("raw"))
_NEW_SUMMARY = update(documents).where(_OF_ONE).values(summary=bindparam("raw"))
_NEW_COLUMNS = (
    update(runs)
    .where(runs.c.number == bindparam("at"))
    .values(
        state=bindparam("new_state"),
        tokens=bindparam("new_tokens"),
        cost_usd=bindparam("new_cost_usd"),
        failures=bindparam("new_failures"),
        failed_turns=bindparam("new_failed_turns"),
        duration_s=func.coalesce(runs.c.duration_s, bindparam("new_duration_s")),
    )
)


def _put_contents(connection: Connection, made: Sequence[tuple[int, str, Digest]]) -> None:
    _insert(connection, calls, list(_sums(made)))
    blank: dict[str, Any] = dict.fromkeys(SCOPES, "")
    said = [{"run": at, **blank, **one.texts} for at, _, one in made]
    index_of(connection.dialect.name).put(connection, said)


def _placed(
    connection: Connection, rows: Sequence[RunRow], gone: Sequence[str] = ()
) -> tuple[list[tuple[int, RunRow]], dict[str, int]]:
    """Return the rows with their new numbers, and the present numbers of these runs and of `gone`."""
    known = _numbers(connection, [*(row.id for row in rows), *gone])
    new = [row for row in rows if row.id not in known or not is_near(known[row.id], row)]
    return list(numbered(rows, known, _taken(connection, new))), known


def forget(connection: Connection, numbers: Iterable[int]) -> None:
    """Delete everything that is known about these runs."""
    gone = list(numbers)
    for table, column in (
        (runs, runs.c.number),
        (documents, documents.c.run),
        (tags, tags.c.run),
        (calls, calls.c.run),
    ):
        _drop(connection, table, column, gone)
    index_of(connection.dialect.name).drop(connection, gone)


def batches(things: Iterable[T], size: int) -> Iterator[list[T]]:
    source = iter(things)
    while some := list(islice(source, size)):
        yield some


def _many(connection: Connection, statement: Any, values: list[dict[str, Any]]) -> None:
    if values:
        connection.execute(statement, values)


def _insert(connection: Connection, table: Table, values: list[dict[str, Any]]) -> None:
    """Insert rows: compile the statement once with SQLAlchemy, and pass the values directly to the driver. For many
    rows this is twice as fast as letting SQLAlchemy process each value, and ours need no conversion.
    """
    if not values:
        return
    statement, order = _spelled(table, connection.dialect)
    if order is not None:
        rows: list[Any] = [tuple(one.get(name) for name in order) for one in values]
    else:
        rows = [{column.name: one.get(column.name) for column in table.c} for one in values]
    connection.exec_driver_sql(statement, rows)


@lru_cache(maxsize=32)
def _spelled(table: Table, dialect: Dialect) -> tuple[str, list[str] | None]:
    """Return the statement, and the order of its values if the driver does not support names."""
    compiled = insert(table).compile(dialect=dialect)
    return str(compiled), compiled.positiontup


def _drop(connection: Connection, table: Table, column: Any, numbers: Sequence[int]) -> None:
    for some in batches(numbers, _AT_ONCE):
        connection.execute(delete(table).where(column.in_(some)))


def _numbers(connection: Connection, ids: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in batches(ids, _AT_ONCE):
        ask = select(runs.c.id, runs.c.number).where(runs.c.id.in_(some))
        found.update(connection.execute(ask).all())
    return found


def _there(connection: Connection, numbers: Iterable[int]) -> set[int]:
    found: set[int] = set()
    for some in batches(numbers, _AT_ONCE):
        ask = select(runs.c.number).where(runs.c.number.in_(some))
        found.update(connection.execute(ask).scalars())
    return found


def _taken(connection: Connection, rows: Sequence[RunRow]) -> set[int]:
    """Return taken numbers near those that new rows would get."""
    found: set[int] = set()
    for some in batches((row.started_ns for row in rows), _AT_ONCE):
        hit = connection.execute(select(runs.c.number).where(runs.c.number.in_(some))).scalars()
        for number in hit:
            near = runs.c.number.between(number, number + 1_000)
            found.update(connection.execute(select(runs.c.number).where(near)).scalars())
    return found


def _values(number: int, row: RunRow) -> dict[str, Any]:
    return {"number": number, **{name: getattr(row, name) for name in _COLUMNS}}


def _tags(placed: Sequence[tuple[int, RunRow]]) -> list[dict[str, Any]]:
    return [
        {"run": at, "key": key, "value": value}
        for at, row in placed
        for key, value in row.tags.items()
    ]


def _columns(state: str, summary: Summary, took: float | None = None) -> dict[str, Any]:
    return {
        "state": state,
        "tokens": whole(summary.tokens),
        "cost_usd": summary.cost_usd,
        "failures": summary.failures,
        "failed_turns": summary.failed_turns,
        "duration_s": summary.duration_s if took is None else took,
    }


def _sums(made: Sequence[tuple[int, str, Digest]]) -> Iterator[dict[str, Any]]:
    for number, _, digest in made:
        for (kind, name, bucket), total in digest.calls.items():
            yield {
                "run": number,
                "kind": kind,
                "name": name,
                "bucket": bucket,
                "calls": total.calls,
                "failures": total.failures,
                "input_tokens": whole(total.input_tokens),
                "output_tokens": whole(total.output_tokens),
                "cost_usd": total.cost_usd,
            }
