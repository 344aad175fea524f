"""Sums over many runs: how many, how they ended, what they spent, how long things took. Knows the
tables; not how sums are shown.

Times of calls are kept in buckets (see `digest.bucket`), so their percentiles are within 5 %; those of
runs are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, Connection, Integer, case, distinct, func, select
from sqlalchemy import cast as as_type

from playhead import clock
from playhead.errors import UsageError
from playhead.library.digest import seconds_in
from playhead.library.engine import database_of, sound
from playhead.library.indexing import Progress, update
from playhead.library.search import Search, conditions
from playhead.library.tables import calls, runs

By = Literal["model", "tool", "day", "name"]
BYS: tuple[By, ...] = get_args(By)
_DAY_S = 86_400
_PERCENTS = (50, 95, 99)
_MOST_FAILING = 5

# p50, p95 and p99 in seconds.
Times = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What was found under one heading. None: unknown. Of models and tools, `calls`, `failures` and
    `times` are those of calls; of days and names, `failures` and `times` are those of runs.
    """

    key: str
    runs: int
    failed_runs: int
    calls: int | None = None
    failures: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    times: Times | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A tool that fails: how often, of how many calls."""

    tool: str
    failures: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """All runs that fit, by headings. `failing`: the tools that fail most."""

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
) -> Stats:
    """Over the runs that fit `wanted`; its order and page do not count. UsageError: no such heading."""
    heading = next((one for one in BYS if one == by), None)
    if heading is None:
        raise UsageError(f"Runs cannot be summed up by {by!r}; expected {', '.join(BYS)}.")
    if not (home / "runs").is_dir():
        return Stats(by=heading, total=NOTHING, statuses={})
    update(home, prices=prices, progress=progress)
    fits = conditions(wanted or Search())
    db = database_of(home)

    def work() -> Stats:
        with db.reading() as connection:
            return Stats(
                by=heading,
                total=_total(connection, fits),
                statuses=_statuses(connection, fits),
                groups=tuple(_GROUPS[heading](connection, fits)),
                failing=tuple(_failing(connection, fits)),
            )

    return sound(db, work)


_Fits = Sequence[ColumnElement[bool]]


def _total(connection: Connection, fits: _Fits) -> Group:
    found = _by_runs(connection, fits, func.coalesce(None, ""))
    return found[0] if found else NOTHING


def _statuses(connection: Connection, fits: _Fits) -> dict[str, int]:
    ask = select(runs.c.status, func.count()).where(*fits).group_by(runs.c.status)
    return dict(connection.execute(ask).all())


def _by_runs(connection: Connection, fits: _Fits, key: ColumnElement[Any]) -> list[Group]:
    ask = (
        select(
            key,
            func.count(),
            func.sum(_is_failed()),
            func.sum(runs.c.failures),
            func.sum(runs.c.tokens),
            func.sum(runs.c.cost_usd),
        )
        .where(*fits)
        .group_by(key)
    )
    times = _run_times(connection, fits, key)
    return [
        Group(
            key=str(heading),
            runs=count,
            failed_runs=failed,
            failures=failures or 0,
            tokens=tokens,
            cost_usd=cost,
            times=times.get(str(heading)),
        )
        for heading, count, failed, failures, tokens, cost in connection.execute(ask)
    ]


def _run_times(connection: Connection, fits: _Fits, key: ColumnElement[Any]) -> dict[str, Times]:
    """The nearest rank: a time that some run really took."""
    at = func.row_number().over(partition_by=key, order_by=runs.c.duration_s).label("at")
    count = func.count().over(partition_by=key).label("count")
    ranked = (
        select(key.label("key"), runs.c.duration_s.label("took"), at, count)
        .where(*fits, runs.c.duration_s.is_not(None))
        .subquery()
    )
    ranks = [
        func.max(case((ranked.c.at == (ranked.c.count * percent + 99) // 100, ranked.c.took)))
        for percent in _PERCENTS
    ]
    ask = select(ranked.c.key, *ranks).group_by(ranked.c.key)
    return {str(heading): (p50, p95, p99) for heading, p50, p95, p99 in connection.execute(ask)}


def _days(connection: Connection, fits: _Fits) -> list[Group]:
    """Days as they are here, newest first."""
    zone = datetime.fromtimestamp(clock.wall_ns() / 1e9, timezone.utc).astimezone().utcoffset()
    shift = int((zone or timedelta()).total_seconds())
    seconds = as_type(runs.c.number // 1_000_000_000, Integer) + shift
    found = _by_runs(connection, fits, seconds // _DAY_S)
    found.sort(key=lambda group: int(group.key), reverse=True)
    return [replace(group, key=_date(int(group.key))) for group in found]


def _date(day: int) -> str:
    at = datetime.fromtimestamp(day * _DAY_S, timezone.utc)
    return at.strftime("%Y-%m-%d")


def _names(connection: Connection, fits: _Fits) -> list[Group]:
    return sorted(_by_runs(connection, fits, runs.c.name), key=_weight)


def _by_calls(kind: str) -> Callable[[Connection, _Fits], list[Group]]:
    def groups(connection: Connection, fits: _Fits) -> list[Group]:
        used = [
            func.coalesce(func.sum(column), 0)
            for column in (calls.c.input_tokens, calls.c.output_tokens)
        ]
        known = func.count(calls.c.input_tokens) + func.count(calls.c.output_tokens)
        ask = (
            select(
                calls.c.name,
                func.count(distinct(calls.c.run)),
                func.count(distinct(case((runs.c.status == "failed", calls.c.run)))),
                func.sum(calls.c.calls),
                func.sum(calls.c.failures),
                case((known > 0, used[0] + used[1])),
                func.sum(calls.c.cost_usd),
            )
            .join(runs, runs.c.number == calls.c.run)
            .where(calls.c.kind == kind, *fits)
            .group_by(calls.c.name)
        )
        times = _call_times(connection, fits, kind)
        found = [
            Group(
                key=name,
                runs=count,
                failed_runs=failed,
                calls=made,
                failures=failures,
                tokens=tokens,
                cost_usd=cost,
                times=times.get(name),
            )
            for name, count, failed, made, failures, tokens, cost in connection.execute(ask)
        ]
        return sorted(found, key=_weight)

    return groups


def _call_times(connection: Connection, fits: _Fits, kind: str) -> dict[str, Times]:
    ask = (
        select(calls.c.name, calls.c.bucket, func.sum(calls.c.calls))
        .join(runs, runs.c.number == calls.c.run)
        .where(calls.c.kind == kind, calls.c.bucket >= 0, *fits)
        .group_by(calls.c.name, calls.c.bucket)
        .order_by(calls.c.name, calls.c.bucket)
    )
    buckets: dict[str, list[tuple[int, int]]] = {}
    for name, bucket, count in connection.execute(ask):
        buckets.setdefault(name, []).append((bucket, count))
    return {name: percentiles(found) for name, found in buckets.items()}


def percentiles(buckets: Sequence[tuple[int, int]]) -> Times:
    """Of buckets in order, each with how many calls are in it. Pure."""
    total = sum(count for _, count in buckets)
    p50, p95, p99 = (_at_rank(buckets, -(-total * percent // 100)) for percent in _PERCENTS)
    return p50, p95, p99


def _at_rank(buckets: Sequence[tuple[int, int]], rank: int) -> float:
    passed = 0
    for bucket, count in buckets:
        passed += count
        if passed >= rank:
            return seconds_in(bucket)
    return 0.0


def _failing(connection: Connection, fits: _Fits) -> Iterator[Failing]:
    failures = func.sum(calls.c.failures)
    ask = (
        select(calls.c.name, failures, func.sum(calls.c.calls))
        .join(runs, runs.c.number == calls.c.run)
        .where(calls.c.kind == "tool", *fits)
        .group_by(calls.c.name)
        .having(failures > 0)
        .order_by(failures.desc(), calls.c.name)
        .limit(_MOST_FAILING)
    )
    for tool, failed, made in connection.execute(ask):
        yield Failing(tool=tool, failures=failed, calls=made)


def _is_failed() -> ColumnElement[int]:
    return case((runs.c.status == "failed", 1), else_=0)


def _weight(group: Group) -> tuple[float, int, str]:
    """What costs most comes first, then what is used most."""
    return -(group.cost_usd or 0.0), -(group.calls or group.runs), group.key


_GROUPS: dict[By, Callable[[Connection, _Fits], list[Group]]] = {
    "model": _by_calls("model"),
    "tool": _by_calls("tool"),
    "day": _days,
    "name": _names,
}
