"""Fifty writers and fifty readers of one catalogue in PostgreSQL: count what they did, what failed, and what was lost.

Ten processes with ten clients each. Writers put runs with the functions that indexing uses; readers ask what people ask.
"""

from __future__ import annotations

import json
import multiprocessing
import random
from collections import Counter
from pathlib import Path
from threading import BrokenBarrierError, Thread
from typing import Any

from sqlalchemy import func, select

from bench.teams.catalogue import DAY_NS, NEWEST_NS
from bench.teams.figures import Figure
from playhead import clock
from playhead.library import engine
from playhead.library.digest import CallSum, Digest
from playhead.library.ledger import put_whole
from playhead.library.postgres import PostgresDatabase
from playhead.library.run_rows import RunRow, Summary
from playhead.library.search import Search, query

PROCESSES, CLIENTS = 10, 10
_AT_ONCE = 5


def bench_load(url: str, schema: str, home: Path, minutes: float) -> list[Figure]:
    context = multiprocessing.get_context("spawn")
    # The time starts when all of them have started: on a busy machine that takes a minute.
    ready = context.Barrier(PROCESSES)
    answers: Any = context.Queue()
    workers = [
        context.Process(target=_work, args=((url, schema), home, number, (minutes, ready), answers))
        for number in range(PROCESSES)
    ]
    for one in workers:
        one.start()
    told: Counter[str] = Counter()
    errors: list[str] = []
    for _ in workers:
        counts, failed = answers.get()
        told.update(counts)
        errors += failed
    for one in workers:
        one.join()
    db = PostgresDatabase(home, url, schema)
    engine.use(home, db)
    with db.reading() as connection:
        written = engine.runs.c.id.like("load-%")
        ask = select(func.count()).select_from(engine.runs).where(written)
        there = connection.execute(ask).scalar_one()
        called = select(func.count()).select_from(engine.calls).where(engine.calls.c.name == "load")
        calls = connection.execute(called).scalar_one()
    found = query(home, Search(text="loadtest", limit=1), updated=True, complete=False).total
    engine.use(home, None)
    lost = told["runs"] - there, told["runs"] - calls
    done = f"{told['runs']:,} runs written, {told['reads']:,} questions answered"
    failed = f"{len(errors)} errors, {lost[0]} runs and {lost[1]} calls lost, {found:,} runs found by a word"
    return [
        Figure(
            what=f"50 writers and 50 readers, {minutes:g} minutes",
            measured=f"{done}; {failed}",
            goal="0 errors, 0 lost",
            met=not errors and lost == (0, 0) and told["runs"] > 0 and told["reads"] > 0,
        ),
        *(Figure(what="error", measured=said, met=False) for said in errors[:5]),
    ]


def _work(
    where: tuple[str, str], home: Path, number: int, when: tuple[float, Any], answers: Any
) -> None:
    minutes, ready = when
    counts: Counter[str] = Counter()
    errors: list[str] = []
    try:
        db = PostgresDatabase(home, *where)
    except Exception as error:  # noqa: BLE001  the others wait at the barrier, and this process must answer
        ready.abort()
        answers.put(({}, [f"{type(error).__name__}: {error}"[:300]]))
        return
    engine.use(home, db)
    try:
        ready.wait(300)
    except BrokenBarrierError:
        answers.put(({}, []))
        return
    until_ns = clock.mono_ns() + int(minutes * 60e9)

    def client(at: int) -> None:
        chance = random.Random(number * CLIENTS + at)
        is_writer = at % 2 == 0
        turn = 0
        while clock.mono_ns() < until_ns:
            try:
                if is_writer:
                    put = [_run(number, at, turn * _AT_ONCE + one) for one in range(_AT_ONCE)]
                    with db.writing() as connection:
                        put_whole(connection, put)
                    counts["runs"] += len(put)
                else:
                    query(home, _question(chance), updated=True, complete=False)
                    counts["reads"] += 1
            except Exception as error:  # noqa: BLE001  every error counts
                errors.append(f"{type(error).__name__}: {error}"[:300])
            turn += 1

    clients = [Thread(target=client, args=(at,)) for at in range(CLIENTS)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    answers.put((dict(counts), errors))


def _run(number: int, at: int, turn: int) -> tuple[RunRow, str, Digest]:
    run = f"load-{number}-{at}-{turn}"
    # Many writers begin runs in the same nanosecond: their numbers must not collide.
    row = RunRow(
        id=run,
        stamp="s",
        started_ns=NEWEST_NS + turn * 1000,
        status="ok",
        name="load",
        tags={"env": "load"},
        manifest=json.dumps({"run": run, "status": "ok"}).encode(),
    )
    texts = {"prompt": f"loadtest of the parcel {turn}", "response": "it arrived", "about": run}
    calls = {
        ("model", "load", 100): CallSum(calls=1, input_tokens=10, output_tokens=5, cost_usd=0.001)
    }
    return row, "state", Digest(summary=Summary(calls=1, tokens=15), calls=calls, texts=texts)


def _question(chance: random.Random) -> Search:
    day = NEWEST_NS - chance.randrange(900) * DAY_NS
    return chance.choice(
        [
            Search(limit=20),
            Search(
                limit=20,
                models=(f"model-{chance.randrange(9)}",),
                since_ns=day,
                until_ns=day + DAY_NS,
            ),
            Search(limit=20, text=f"word{chance.randrange(997)}"),
            Search(limit=20, text="loadtest"),
        ]
    )
