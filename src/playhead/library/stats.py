"""Sums over many runs: counts, outcomes, tokens, cost and latency. Knows the tables; does not know how sums are
shown.

Durations of calls are stored in buckets (see `digest.bucket`), so their percentiles are accurate to 5 %;
those of runs are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, Connection, case, distinct, func, literal, select

from playhead import clock
from playhead.errors import UsageError
from playhead.library.catalogue import Progress
from playhead.library.digest import seconds_in
from playhead.library.engine import calls, database_of, runs, sound
from playhead.library.indexing import try_update
from playhead.library.search import Search, conditions

By = Literal["model", "tool", "day", "name"]
BYS: tuple[By, ...] = get_args(By)
_DAY_S = 86_400
_PERCENTS = (50, 95, 99)
_MOST_FAILING = 5

# p50, p95 and p99 in seconds.
Times = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The sums of one group. None: unknown. For models and tools, `calls`, `failures` and `times` count calls;
    for days and names, `failures` and `times` count runs.
    """

    key: str
    runs: int
    failed_runs: int
    calls: int | None = None
    failures: int = 0
    failed_turns: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    times: Times | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A failing tool: its failures, and its number of calls."""

    tool: str
    failures: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The sums over all matching runs, by group. `failing`: the tools that fail most often."""

    by: By
    total: Group
    statuses: Mapping[str, int]
    groups: tuple[Group, ...] = ()
    failing: tuple[Failing, ...] = ()


NOTHING = Group(key="", runs=0, failed_runs=0)


def stats(
    home: Path,
    *,
    by: str = "model",
    wanted: Search | None = None,
    prices: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    updated: bool = False,
) -> Stats:
    """Sums over the runs that match `wanted`; its order and page are ignored. UsageError: no such grouping.
    `updated`: another component keeps the catalogue up to date.
    """
    heading = next((one for one in BYS if one == by), None)
    if heading is None:
        raise UsageError(f"Runs cannot be grouped by {by!r}; expected {', '.join(BYS)}.")
    if not (home / "runs").is_dir():
        return Stats(by=heading, total=NOTHING, statuses={})
    db = database_of(home)
    fits = conditions(wanted or Search(), db.dialect)

    def work() -> Stats:
        if not updated:
            try_update(home, prices=prices, progress=progress)
        with db.reading() as connection:
            return _summed(connection, heading, fits)

    return sound(db, work)


_Fits = Sequence[ColumnElement[bool]]


def _summed(connection: Connection, by: By, fits: _Fits) -> Stats:
    if by in _HEADINGS:
        groups = _by_runs(connection, fits, _HEADINGS[by]())
        groups = _days(groups) if by == "day" else sorted(groups, key=_weight)
    else:
        groups = sorted(_by_calls(connection, fits, by), key=_weight)
    (total,) = _by_runs(connection, fits, literal("")) or [NOTHING]
    status = select(runs.c.status, func.count()).where(*fits).group_by(runs.c.status)
    return Stats(
        by=by,
        total=total,
        statuses=dict(connection.execute(status).all()),
        groups=tuple(groups),
        failing=tuple(_failing(connection, fits)),
    )


def _by_runs(connection: Connection, fits: _Fits, key: ColumnElement[Any]) -> list[Group]:
    failed = func.sum(case((runs.c.status == "failed", 1), else_=0))
    spent = func.sum(runs.c.tokens), func.sum(runs.c.cost_usd)
    heading = key.label("heading")
    sums = func.sum(runs.c.failures), func.sum(runs.c.failed_turns)
    ask = select(heading, func.count(), failed, *sums, *spent).where(*fits)
    times = _run_times(connection, fits, key)
    return [
        Group(
            key=str(name),
            runs=count,
            failed_runs=failed_runs,
            failures=int(failures or 0),
            failed_turns=int(failed_turns or 0),
            tokens=_whole(tokens),
            cost_usd=cost,
            times=times.get(name),
        )
        for name, count, failed_runs, failures, failed_turns, tokens, cost in connection.execute(
            ask.group_by(heading)
        )
    ]


def _run_times(connection: Connection, fits: _Fits, key: ColumnElement[Any]) -> dict[Any, Times]:
    """Return the durations of runs, sorted here: a database needs four times as long."""
    took: dict[Any, list[float]] = {}
    ask = select(key, runs.c.duration_s).where(runs.c.duration_s.is_not(None), *fits)
    for name, seconds in connection.execute(ask):
        took.setdefault(name, []).append(seconds)
    return {name: percentiles([(one, 1) for one in sorted(found)]) for name, found in took.items()}


def _day() -> ColumnElement[int]:
    """Return the day of a run in local time."""
    zone = datetime.fromtimestamp(clock.wall_ns() / 1e9, timezone.utc).astimezone().utcoffset()
    shift = int((zone or timedelta()).total_seconds())
    return (runs.c.number // 1_000_000_000 + shift) // _DAY_S


def _days(groups: list[Group]) -> list[Group]:
    """Return the days as dates, newest first."""
    newest = sorted(groups, key=lambda group: int(group.key), reverse=True)
    return [replace(group, key=_date(int(group.key))) for group in newest]


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * _DAY_S, timezone.utc).strftime("%Y-%m-%d")


def _by_calls(connection: Connection, fits: _Fits, kind: str) -> list[Group]:
    runs_of = _runs_of(connection, kind, fits)
    failed_of = _runs_of(connection, kind, [*fits, runs.c.status == "failed"])
    sums: dict[str, list[Any]] = {}
    buckets: dict[str, list[tuple[float, int]]] = {}
    columns = (calls.c.calls, calls.c.failures, calls.c.input_tokens, calls.c.output_tokens)
    totals = [func.sum(column) for column in (*columns, calls.c.cost_usd)]
    key = (calls.c.name, calls.c.bucket)
    ask = select(*key, *totals).where(calls.c.kind == kind, *_within(fits))
    for name, bucket, *found in connection.execute(ask.group_by(*key).order_by(*key)):
        *counts, cost = found
        values = [*map(_whole, counts), cost]
        sums[name] = [_plus(*pair) for pair in zip(sums.get(name, [None] * 5), values, strict=True)]
        if bucket >= 0:
            buckets.setdefault(name, []).append((seconds_in(bucket), values[0]))
    return [
        Group(
            key=name,
            runs=runs_of.get(name, 0),
            failed_runs=failed_of.get(name, 0),
            calls=made,
            failures=failures,
            tokens=_plus(came, went),
            cost_usd=cost,
            times=percentiles(buckets[name]) if name in buckets else None,
        )
        for name, (made, failures, came, went, cost) in sums.items()
    ]


def _runs_of(connection: Connection, kind: str, fits: _Fits) -> dict[str, int]:
    count = func.count(distinct(calls.c.run))
    ask = select(calls.c.name, count).where(calls.c.kind == kind, *_within(fits))
    return dict(connection.execute(ask.group_by(calls.c.name)).all())


def _within(fits: _Fits) -> list[ColumnElement[bool]]:
    return [calls.c.run.in_(select(runs.c.number).where(*fits))] if fits else []


def _whole(total: Any) -> int | None:
    """Return an int: PostgreSQL returns the sum of integers as a decimal."""
    return None if total is None else int(total)


def _plus(left: Any, right: Any) -> Any:
    """Add two numbers. If one is unknown (None), return the other."""
    return right if left is None else left if right is None else left + right


def percentiles(found: Sequence[tuple[float, int]]) -> Times:
    """Return the nearest ranks of sorted values, each given with its count. Pure."""
    total = sum(count for _, count in found)
    ranks = [-(-total * percent // 100) for percent in _PERCENTS]
    reached: list[float] = []
    passed = 0
    for value, count in found:
        passed += count
        while len(reached) < len(ranks) and passed >= ranks[len(reached)]:
            reached.append(value)
    p50, p95, p99 = reached
    return p50, p95, p99


def _failing(connection: Connection, fits: _Fits) -> Iterator[Failing]:
    failures = func.sum(calls.c.failures)
    ask = (
        select(calls.c.name, failures, func.sum(calls.c.calls))
        .where(calls.c.kind == "tool", *_within(fits))
        .group_by(calls.c.name)
        .having(failures > 0)
        .order_by(failures.desc(), calls.c.name)
        .limit(_MOST_FAILING)
    )
    for tool, failed, made in connection.execute(ask):
        yield Failing(tool=tool, failures=int(failed), calls=int(made))


def _weight(group: Group) -> tuple[float, int, str]:
    """Sort key: the highest cost first, then the most used."""
    return -(group.cost_usd or 0.0), -(group.calls or group.runs), group.key


_HEADINGS: dict[By, Callable[[], ColumnElement[Any]]] = {"day": _day, "name": lambda: runs.c.name}
