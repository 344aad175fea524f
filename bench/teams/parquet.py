"""Parquet files of 100,000 runs: how long it takes to write them, and five questions of a dashboard."""

from __future__ import annotations

import time
from pathlib import Path

from sqlalchemy import text

from bench.teams.catalogue import NEWEST_NS, seconds
from bench.teams.figures import Figure
from playhead.analytics.catalogue_tables import RunToRead, moment_of
from playhead.analytics.duck import ask_parquet, write_parquet
from playhead.analytics.tape_tables import TapeRows
from playhead.library.engine import database_of

STEP_NS = 86_400 * 10**6  # a thousand a day
FILL = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
INSERT INTO runs SELECT {at}, 'run-' || n, 's', {at}, CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'ok' END, 0,
  '/srv/shop-' || n % 7, 'agent-' || n % 40, NULL, 0, 0, 1.5 + n % 60, NULL, 'state', 1010, 0.003, n % 50 = 0, 0
  FROM numbers;
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
INSERT INTO tags SELECT {at}, 'env', CASE WHEN n % 3 = 0 THEN 'ci' ELSE 'dev' END FROM numbers;
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
INSERT INTO calls SELECT {at}, 'model', 'model-' || n % 9, 150 + n % 90, 4, n % 50 = 0, 1000, 10, 0.003 FROM numbers;
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
INSERT INTO calls SELECT {at}, 'tool', 'tool-' || n % 30, 100 + n % 70, 3, n % 31 = 0, NULL, NULL, NULL FROM numbers;
"""
QUESTIONS = {
    "cost and tokens by day": "SELECT day, sum(cost_usd), sum(input_tokens) FROM daily_cost GROUP BY day ORDER BY day",
    "cost by model": "SELECT model, sum(cost_usd), sum(calls) FROM llm GROUP BY model ORDER BY 2 DESC",
    "latency percentiles by model": "SELECT model, quantile_cont(duration_s, [0.5, 0.95, 0.99]) FROM llm GROUP BY model",
    "failure rate by agent": "SELECT name, avg((status = 'failed')::INT), count(*) FROM runs GROUP BY name ORDER BY 2 DESC",
    "failing tools of CI in a month": "SELECT tool, sum(failures), sum(calls) FROM tools JOIN tags USING (run) "
    "WHERE key = 'env' AND value = 'ci' AND tools.day >= DATE '2026-10-15' GROUP BY tool ORDER BY 2 DESC LIMIT 10",
}


CALLS = 7


def rows_of(run: RunToRead) -> TapeRows:
    """Seven calls, a turn and a changed file, without a tape: reading 100,000 tapes is measured by `playhead reindex`."""
    day = moment_of(run.started_ns).date()
    began = moment_of(run.started_ns).replace(tzinfo=None)
    return {
        "single_calls": [
            (
                run.id,
                day,
                n,
                "llm",
                "POST",
                f"model-{n}",
                "main",
                began,
                n / 7,
                "returned",
                None,
                900,
                9,
                0.003,
            )
            for n in range(CALLS)
        ],
        "turns": [(run.id, day, "turn", "main", began, 3.5, "returned", None, None, "planned")],
        "files": [(run.id, day, f"src/{run.id}.py", "modified", 3, 512)],
    }


def bench_parquet(folder: Path, count: int) -> list[Figure]:
    home = folder / "home"
    (home / "runs").mkdir(parents=True)
    db = database_of(home)
    at = f"({NEWEST_NS} - n * {STEP_NS})"
    with db.writing() as connection:
        for statement in FILL.format(at=at, count=count).split(";\n"):
            if statement.strip():
                connection.execute(text(statement))
    target = folder / "parquet"
    took = seconds(lambda: write_parquet(db, target, rows_of))
    again = seconds(lambda: write_parquet(db, target, rows_of))
    files = list(target.rglob("*.parquet"))
    size = sum(path.stat().st_size for path in files)
    written = f"{took:.1f} s, {size / 1e6:.1f} MB, {len(files):,} files"
    rows = [
        Figure(what=f"Parquet of {count:,} runs, {CALLS * count:,} calls", measured=written),
        Figure(what="the same again, no run has changed", measured=f"{again:.1f} s"),
    ]
    for name, question in QUESTIONS.items():
        before = time.process_time()
        times = sorted(seconds(lambda: ask_parquet(target, question)) for _ in range(5))  # noqa: B023  called at once
        cpu = (time.process_time() - before) / 5
        told = f"{times[2]:.2f} s ({times[4]:.2f} s at most of 5), {cpu:.2f} s of processor time"
        rows.append(Figure(what=name, measured=told, goal="≤ 0.5 s", met=times[2] <= 0.5))
    return rows
