"""The catalogue in PostgreSQL with a million runs: how long the questions of people take, and what 100 clients do to it.

The tables, the indexes and the queries are the product's. Only the rows are made by the server, because reading a
million tapes would take hours.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import text

from bench.teams.figures import Figure
from playhead import clock
from playhead.library import engine
from playhead.library.postgres import PostgresDatabase
from playhead.library.search import Search, query
from playhead.library.server_rows import ServerRows
from playhead.library.text_index import words

DAY_NS = 86_400 * 10**9
NEWEST_NS = 1_794_600_000 * 10**9
STEP_NS = 86 * 10**6 * 1000  # a thousand a day

# Each run has 60 words: some that every run has, some of one run in a thousand, and 30 of a vocabulary of 20,000.
FILL = """
INSERT INTO runs SELECT {at}, 'run-' || n, 's', {at}, CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'ok' END, false,
  '/srv/shop-' || n % 7, 'agent-' || n % 40, NULL, false, false, 1.5, NULL, 'state', 1010, 0.003, 0, 0
  FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) n;
INSERT INTO documents SELECT {at}, convert_to('{{"run": "run-' || n || '", "status": "ok"}}', 'UTF8'), NULL
  FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) n;
INSERT INTO tags SELECT {at}, 'env', CASE WHEN n % 3 = 0 THEN 'ci' ELSE 'dev' END FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) n;
INSERT INTO calls SELECT {at}, 'model', 'model-' || n % 9, 200, 1, 0, 1000, 10, 0.003 FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) n;
INSERT INTO calls SELECT {at}, 'tool', 'tool-' || n % 30, 100, 2, 0, NULL, NULL, NULL FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) n;
INSERT INTO texts SELECT at, prompt, response, '', '', about, p, r, '', '', a, array_to_tsvector(ARRAY(
    SELECT unnest(tsvector_to_array(p || r || a)) UNION ALL SELECT ':p:' || unnest(tsvector_to_array(p))
    UNION ALL SELECT ':r:' || unnest(tsvector_to_array(r)) UNION ALL SELECT ':a:' || unnest(tsvector_to_array(a))))
  FROM (SELECT *, to_tsvector('simple', prompt) AS p, to_tsvector('simple', response) AS r,
    to_tsvector('simple', about) AS a
  FROM (SELECT {at} AS at, 'the parcel ' || n || ' of customer ' || n % 5000 || ' arrived broken, refund word'
      || n % 997 || ' please ' || (SELECT string_agg('w' || (n::bigint * 7919 + k * k * 104729) % 20000, ' ')
      FROM generate_series(1, 20) k) AS prompt,
    'I am sorry to read that the parcel arrived broken ' || CASE WHEN n % 20 = 0 THEN 'escalated ' ELSE '' END
      || (SELECT string_agg('w' || (n::bigint * 6131 + k * k * 99991) % 20000, ' ') FROM generate_series(1, 10) k)
      AS response,
    'agent-' || n % 40 || ' python agent.py env ci' AS about
  FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) n) made) cut;
"""


def seconds(work: Callable[[], Any]) -> float:
    began = clock.mono_ns()
    work()
    return (clock.mono_ns() - began) / 1e9


@contextmanager
def running_postgres(folder: Path) -> Iterator[str]:
    """A server of our own, with the settings of Debian but for its folder. An existing database in it is used again."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"))
    other: dict[str, Any] = {}
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
        other = {"user": "postgres"}
    data = str(folder / "data")

    def run(name: str, *more: str) -> None:
        argv = [str(programs / name), "-D", data, *more]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd=folder, **other)

    if not (folder / "data").exists():
        run("initdb", "-A", "trust", "-U", "playhead", "--no-sync")
    options = f"-k {folder} -c listen_addresses=''"
    run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql+psycopg://playhead@/postgres?host={folder}"
    finally:
        run("pg_ctl", "-m", "fast", "-w", "stop")


def fill(db: PostgresDatabase, count: int) -> None:
    """Insert the rows, half of them in each of two connections; the full-text indexes are made afterwards, which takes
    a fifth of the time.
    """
    at = f"({NEWEST_NS} - n::bigint * {STEP_NS})"
    with db.writing() as connection:
        for index in words.indexes:
            index.drop(connection)

    def insert(first: int, last: int) -> None:
        with db.reading() as connection, connection.begin():
            for statement in FILL.format(at=at).split(";\n"):
                if statement.strip():
                    connection.execute(text(statement), {"first": first, "last": last})

    with ThreadPoolExecutor(2) as pool:
        half = count // 2
        list(pool.map(insert, (1, half + 1), (half, count)))
    with db.writing() as connection:
        connection.execute(text("SET LOCAL maintenance_work_mem = '512MB'"))
        for index in words.indexes:
            index.create(connection)
    with db.reading() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("VACUUM ANALYZE"))


def ask_all(db: PostgresDatabase, home: Path, count: int) -> list[Figure]:
    """The questions of people, each 20 times."""
    # There are a thousand runs a day.
    ago = min(200, count // 2000)
    day = NEWEST_NS - DAY_NS

    def last() -> None:
        found = list(islice(ServerRows(db).newest_first(project=None, since_ns=None), 20))
        _check(is_right=len(found) == 20)

    def ask(**wanted: Any) -> None:
        page = query(home, Search(limit=20, **wanted), updated=True, complete=False)
        _check(is_right=len(page.rows) > 0)

    def old_day() -> None:
        ask(models=("model-3",), since_ns=day - ago * DAY_NS, until_ns=day - (ago - 1) * DAY_NS)

    rows: list[tuple[str, Callable[[], None], int]] = [
        ("`list`: last 20", last, 30),
        ("viewer: last 20", lambda: ask(), 30),
        ("one model, last day", lambda: ask(models=("model-3",), since_ns=day), 100),
        (f"one model, a day {ago} days ago", old_day, 100),
        ("a word of 0.1 % of the runs", lambda: ask(text="word42 refund"), 300),
        ("a word of 0.25 % of the runs", lambda: ask(text="w1234"), 300),
        ("a word of 5 % of the runs", lambda: ask(text="escalated"), 300),
        ("a word that every run has", lambda: ask(text="parcel"), 300),
        ("a phrase", lambda: ask(text='"customer 4711"'), 300),
        ("the beginning of a word", lambda: ask(text="word4*"), 300),
        ("a word in prompts, failed, one model", lambda: ask(
            text="refund", scope="prompt", statuses=frozenset({"failed"}), models=("model-3",)), 300),
    ]  # fmt: skip
    return [_timed(*row) for row in rows]


def bench_catalogue(
    folder: Path, count: int, minutes: float, kept: Path | None = None
) -> list[Figure]:
    """`kept`: a folder whose database is used again by the next call, because filling it takes minutes."""
    from bench.teams.load import bench_load  # which needs this module

    if kept is not None:
        folder = kept
        folder.mkdir(mode=0o755, exist_ok=True)
    with running_postgres(folder) as url:
        home = folder / "home"
        (home / "runs").mkdir(parents=True, exist_ok=True)
        db = PostgresDatabase(home, url, "playhead_bench")
        engine.use(home, db)
        there = _count(db)
        if there not in (0, count):
            raise SystemExit(f"{folder} has a database with {there:,} runs: delete it.")
        if not there:
            filled = seconds(lambda: fill(db, count))
            rows = [Figure(what=f"{count:,} runs inserted", measured=f"{filled:.0f} s")]
        else:
            rows = [Figure(what=f"{count:,} runs", measured="of an earlier measurement")]
        rows += _sizes(db)
        rows += ask_all(db, home, count)
        engine.use(home, None)
        rows += bench_load(url, "playhead_bench", home, minutes) if minutes else []
        return rows


def _count(db: PostgresDatabase) -> int:
    """The number of runs, without those of an earlier load."""
    with db.writing() as connection:
        for name in ("documents", "tags", "calls", "texts"):
            gone = f"DELETE FROM {name} USING runs WHERE run = number AND id LIKE 'load-%'"  # noqa: S608  our own names
            connection.execute(text(gone))
        connection.execute(text("DELETE FROM runs WHERE id LIKE 'load-%'"))
        found: int = connection.execute(text("SELECT count(*) FROM runs")).scalar_one()
    return found


def _check(*, is_right: bool) -> None:
    if not is_right:
        raise SystemExit("A question got no answer: the figure would mean nothing.")


def _timed(name: str, work: Callable[[], None], goal_ms: int) -> Figure:
    work()
    times = sorted(seconds(work) * 1000 for _ in range(20))
    return Figure(
        what=name,
        measured=f"p95 {times[18]:.1f} ms, median {statistics.median(times):.1f} ms",
        goal=f"p95 ≤ {goal_ms} ms",
        met=times[18] <= goal_ms,
    )


def _sizes(db: PostgresDatabase) -> list[Figure]:
    ask = "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    with db.reading() as connection:
        found = connection.execute(text(ask)).all()
    total = sum(one[1] + one[2] for one in found)
    largest = sorted(found, key=lambda one: -one[1] - one[2])[:4]
    parts = ", ".join(
        f"{one[0]} {one[1] / 1e9:.2f} + indexes {one[2] / 1e9:.2f}" for one in largest
    )
    return [Figure(what="size in PostgreSQL", measured=f"{total / 1e9:.2f} GB ({parts})")]
