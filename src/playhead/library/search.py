"""Find runs: filters, words, order, one page at a time. Knows the tables; does not know how runs are shown.

A page starts after a given run, not at an offset: runs that are added or deleted meanwhile neither repeat nor
hide a row.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    TextClause,
    and_,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
)

from playhead.errors import UsageError
from playhead.library.catalogue import Entry, decode_entry
from playhead.library.engine import Database, calls, database_of, documents, runs, sound, tags
from playhead.library.fulltext import Scope, Snippet
from playhead.library.indexing import Reader, refresh, try_update
from playhead.library.run_rows import Summary, decode_summary, plain, whole
from playhead.library.shelf import FolderShelf
from playhead.library.text_index import index_of

# The columns a page may be sorted by; a leading minus sorts in descending order.
_ORDERS: dict[str, ColumnElement[Any]] = {
    "started": runs.c.number,
    "cost": func.coalesce(runs.c.cost_usd, -1.0),
    "duration": func.coalesce(runs.c.duration_s, -1.0),
    "tokens": func.coalesce(runs.c.tokens, -1),
    "name": runs.c.name,
}
SORTS = tuple(_ORDERS)
LARGEST_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A query; all its filters must match. Empty: all runs, newest first."""

    text: str = ""
    scope: Scope | None = None
    statuses: frozenset[str] = frozenset()
    models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    # A value of None matches any value.
    tags: tuple[tuple[str, str | None], ...] = ()
    # * and ? are wildcards, here and in models and tools.
    name: str | None = None
    project: str | None = None
    min_cost: float | None = None
    failed_turns: bool = False
    max_cost: float | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    replays: bool = True
    sort: str = "-started"
    limit: int = 50
    cursor: str | None = None

    @property
    def needs_tapes(self) -> bool:
        """Return whether the filters or the order need more than manifests."""
        asked = (self.text, self.models, self.tools, self.min_cost is not None, self.failed_turns)
        return any(asked) or self.max_cost is not None or self.sort.lstrip("-") in _FROM_TAPES


_FROM_TAPES = {"cost", "tokens", "duration"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """A run on a page."""

    entry: Entry
    summary: Summary
    models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    snippets: tuple[Snippet, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPage:
    """One page of results. `total` counts the matches on all pages; `next` is the cursor of the next page.
    `has_more`: there are more than `total` matches, because the database stopped counting.
    """

    rows: tuple[FoundRun, ...] = ()
    total: int = 0
    has_more: bool = False
    next: str | None = None


# Each run with the state of its tape from which its catalogue entry was made.
_Rows = list[tuple[FoundRun, "str | None"]]


def query(
    home: Path,
    wanted: Search,
    *,
    prices: Mapping[str, Any] | None = None,
    updated: bool = False,
    complete: bool = True,
) -> ResultPage:
    """The runs of a store that match, in their current state. UsageError: the query is invalid. `updated`:
    another component keeps the catalogue up to date, and has finished with it if `complete`; the catalogue is
    then used as it is.
    """
    order, descending = _order(wanted.sort)
    after = None if wanted.cursor is None else _decode(wanted.cursor, wanted.sort)
    if not (home / "runs").is_dir():
        return ResultPage()
    db, reader = database_of(home), Reader(FolderShelf(home), prices)

    def work() -> tuple[_Rows, int, str | None]:
        if not updated:
            try_update(home, prices=prices, read=wanted.needs_tapes)
        page = _page(db, wanted, order, after, descending=descending)
        if not complete or not _freshened(home, page[0], reader):
            return page
        return _page(db, wanted, order, after, descending=descending)

    rows, total, following = sound(db, work)
    limit = db.most_counted
    most = total if limit is None else min(total, limit)
    return ResultPage(
        rows=tuple(found for found, _ in rows), total=most, has_more=total > most, next=following
    )


def one(home: Path, run_id: str, *, prices: Mapping[str, Any] | None = None) -> FoundRun | None:
    """Return a run by its id, in its current state. None: there is no such run."""
    if not (home / "runs").is_dir():
        return None
    db, reader = database_of(home), Reader(FolderShelf(home), prices)

    def work() -> _Rows:
        try_update(home, prices=prices, read=False)
        rows = _by_id(db, run_id)
        return _by_id(db, run_id) if _freshened(home, rows, reader) else rows

    found = sound(db, work)
    return found[0][0] if found else None


def _freshened(home: Path, rows: _Rows, reader: Reader) -> bool:
    """Read the shown runs again if their tapes have changed. Return whether any tape had changed."""
    stale = [found.entry.id for found, state in rows if _is_stale(reader, found, state)]
    refresh(home, stale, reader)
    return bool(stale)


def _by_id(db: Database, run_id: str) -> _Rows:
    ask = select(runs.c.number, runs.c.id, runs.c.state, runs.c.problem, runs.c.number.label("at"))
    with db.reading() as connection:
        rows = connection.execute(ask.where(runs.c.id == plain(run_id))).all()
        return _found(connection, db.home, rows, Search())


def _is_stale(reader: Reader, found: FoundRun, state: str | None) -> bool:
    now = reader.shelf.state(found.entry.id, reader.stamp)
    # An empty stamp: another process is deleting the run.
    return bool(now) and now != state


def _page(
    db: Database,
    wanted: Search,
    order: ColumnElement[Any],
    after: tuple[Any, int] | None,
    *,
    descending: bool,
) -> tuple[_Rows, int, str | None]:
    limit = max(1, min(wanted.limit, LARGEST_PAGE))
    with db.reading() as connection:
        source, number, fits = _source(connection, wanted)
        # "Newest first" is the order of the index itself: use one column, so that SQLite recognises it.
        columns = (number,) if order is runs.c.number else (order, number)
        ask = select(number, runs.c.id, runs.c.state, runs.c.problem, order.label("at"))
        ask = ask.select_from(source).where(*fits)
        if after is not None:
            here, there = tuple_(*columns), tuple_(*after[-len(columns) :])
            ask = ask.where(here < there if descending else here > there)
        ask = ask.order_by(*(one.desc() if descending else one.asc() for one in columns))
        rows = connection.execute(ask.limit(limit + 1)).all()
        total = _count(connection, db, source, fits)
        shown = rows[:limit]
        found = _found(connection, db.home, shown, wanted)
    last = shown[-1] if len(rows) > limit else None
    return found, total, None if last is None else _encode(wanted.sort, last[4], last[0])


_Conditions = list[ColumnElement[bool] | TextClause]


def _count(connection: Connection, db: Database, source: FromClause, fits: _Conditions) -> int:
    """Count the matches on all pages. More than the limit of the database: there are more than that."""
    counted = index_of(db.dialect).table if source is not runs and len(fits) == 1 else source
    count = select(func.count()).select_from(counted).where(*fits)
    most = db.most_counted
    if most is not None and counted is not source:
        return most + 1  # `few` has seen that there are more
    if most is not None:
        # Counting a million matches would take most of the time of a search.
        some = select(literal(1)).select_from(counted).where(*fits).limit(most + 1)
        count = select(func.count()).select_from(some.subquery())
    return int(connection.execute(count).scalar_one())


def _source(
    connection: Connection, wanted: Search
) -> tuple[FromClause, ColumnElement[int], _Conditions]:
    """The source of the rows, their numbers in it, and the remaining conditions. Words are matched first: they
    leave the fewest rows, and in the right order.
    """
    dialect = connection.dialect.name
    if not wanted.text:
        return runs, runs.c.number, [*conditions(wanted, dialect)]
    index = index_of(dialect)
    match = index.holds(wanted.text, wanted.scope)
    if match is None:
        raise _no_word(wanted)
    others = conditions(replace(wanted, text=""), dialect)
    few = index.few(connection, wanted.text, wanted.scope)
    if few is not None:
        return runs, runs.c.number, [few, *others]
    joined = index.table.join(runs, runs.c.number == index.number)
    return joined, index.number, [match, *others]


def conditions(wanted: Search, dialect: str = "sqlite") -> list[ColumnElement[bool]]:
    """The conditions on a row of `runs`, in the dialect of this database."""
    fits: list[ColumnElement[bool]] = []
    if wanted.text:
        fits.append(_has_words(wanted, dialect))
    if wanted.statuses:
        fits.append(runs.c.status.in_(sorted(wanted.statuses)))
    if wanted.name is not None:
        fits.append(_like(runs.c.name, plain(wanted.name)))
    if wanted.project is not None:
        # A run without a project belongs to every project.
        fits.append(runs.c.project.in_([plain(wanted.project), ""]))
    # The days are a condition on both tables: a planner does not infer it for the second one, and would read the
    # calls of all days.
    days = _days(wanted, calls.c.run)
    for kind, names in (("model", wanted.models), ("tool", wanted.tools)):
        fits += [
            exists().where(
                calls.c.run == runs.c.number,
                calls.c.kind == kind,
                _like(calls.c.name, plain(one)),
                *days,
            )
            for one in names
        ]
    for key, value in wanted.tags:
        has = and_(tags.c.run == runs.c.number, tags.c.key == plain(key))
        fits.append(
            exists().where(has if value is None else and_(has, tags.c.value == plain(value)))
        )
    if wanted.failed_turns:
        fits.append(runs.c.failed_turns > 0)
    if wanted.min_cost is not None:
        fits.append(runs.c.cost_usd >= wanted.min_cost)
    if wanted.max_cost is not None:
        fits.append(runs.c.cost_usd <= wanted.max_cost)
    fits += _days(wanted, runs.c.number)
    if not wanted.replays:
        fits.append(or_(runs.c.replay_of.is_(None), runs.c.golden))
    return fits


def _days(wanted: Search, number: ColumnElement[int]) -> list[ColumnElement[bool]]:
    """The conditions on the number of a run: it is its start time."""
    fits: list[ColumnElement[bool]] = []
    if wanted.since_ns is not None:
        fits.append(number >= whole(wanted.since_ns))
    if wanted.until_ns is not None:
        fits.append(number < whole(wanted.until_ns))
    return fits


def _has_words(wanted: Search, dialect: str) -> ColumnElement[bool]:
    index = index_of(dialect)
    if index.holds(wanted.text, wanted.scope) is None:
        raise _no_word(wanted)
    return runs.c.number.in_(index.matching(wanted.text, wanted.scope))


def _no_word(wanted: Search) -> UsageError:
    return UsageError(f"There is no word to search for in {wanted.text!r}.")


def _like(column: ColumnElement[str], pattern: str) -> ColumnElement[bool]:
    if "*" not in pattern and "?" not in pattern:
        return column == pattern
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    # SQLite's LIKE ignores case; with ilike, all databases do.
    return column.ilike(escaped.replace("*", "%").replace("?", "_"), escape="\\")


def _found(connection: Connection, home: Path, shown: Sequence[Any], wanted: Search) -> _Rows:
    numbers = [row[0] for row in shown]
    about = {
        run: (manifest, summary)
        for run, manifest, summary in connection.execute(
            select(documents).where(documents.c.run.in_(numbers))
        )
    }
    names: dict[tuple[int, str], list[str]] = {}
    named: Select[Any] = select(calls.c.run, calls.c.kind, calls.c.name).where(
        calls.c.run.in_(numbers)
    )
    for run, kind, name in connection.execute(named.distinct()):
        names.setdefault((run, kind), []).append(name)
    snippets = _snippets(connection, numbers, wanted)
    found: _Rows = []
    for number, run, state, problem, _ in shown:
        manifest, summary = about.get(number, (b"", None))
        one = FoundRun(
            entry=decode_entry(home / "runs" / run, manifest, problem),
            summary=(decode_summary(summary) if summary else None) or Summary(),
            models=tuple(sorted(names.get((number, "model"), ()))),
            tools=tuple(sorted(names.get((number, "tool"), ()))),
            snippets=snippets.get(number, ()),
        )
        found.append((one, state))
    return found


def _snippets(
    connection: Connection, numbers: Sequence[int], wanted: Search
) -> Mapping[int, tuple[Snippet, ...]]:
    if not wanted.text or not numbers:
        return {}
    index = index_of(connection.dialect.name)
    return index.snippets(connection, numbers, wanted.text, wanted.scope)


def _order(sort: str) -> tuple[ColumnElement[Any], bool]:
    column = _ORDERS.get(sort.lstrip("-"))
    if column is None or sort.startswith("--"):
        known = ", ".join(SORTS)
        raise UsageError(
            f"Runs cannot be sorted by {sort!r}; expected one of {known}. A leading - sorts descending."
        )
    return column, sort.startswith("-")


def _encode(sort: str, value: Any, number: int) -> str:
    raw = json.dumps([sort, value, number]).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(cursor: str, sort: str) -> tuple[Any, int]:
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        of, value, number = json.loads(base64.urlsafe_b64decode(padded))
    except (ValueError, TypeError):
        of, value, number = None, None, None
    kinds: tuple[type, ...] = (str,) if sort.lstrip("-") == "name" else (int, float)
    numbers = [one for one in (value, number) if isinstance(one, (int, float))]
    odd = any(abs(one) >= 2**63 for one in numbers)
    if of != sort or odd or not isinstance(value, kinds) or type(number) is not int:
        raise UsageError(f"{cursor[:80]!r} is not a cursor of a list that is sorted by {sort!r}.")
    return plain(value) if isinstance(value, str) else value, number
