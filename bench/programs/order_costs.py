"""The work that `bench.order` measures. Runs under `playhead record`: argv[1] is the address of a server, the others
name cases.

Points are switched off by taking away their log, round by round, so both ways run in one process at the same load.
Prints JSON: for each case the figures of all rounds, by name of the way.
"""

from __future__ import annotations

import _thread
import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from playhead.recording import points

URL = sys.argv[1]
CALLS, JOBS, TAKES, THREADS = 1000, 500, 50_000, 4
ROUNDS = {"gather": 4, "job": 30, "lock": 30, "contended": 15}


def of_process(work: Callable[[], None], count: int) -> float:
    """Microseconds of processor time for one of `count` things."""
    began = time.process_time_ns()
    work()
    return (time.process_time_ns() - began) / count / 1000


def without_points(work: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        log: Any = points.of_process()
        points.end()
        try:
            work()
        finally:
            points.begin(log)

    return run


def gather() -> None:
    async def main() -> None:
        limits = httpx.Limits(max_connections=20)
        async with httpx.AsyncClient(limits=limits, timeout=120) as client:

            async def ask(n: int) -> int:
                return (await client.post(URL, json={"n": n})).status_code

            await asyncio.gather(*(ask(n) for n in range(CALLS)))

    asyncio.run(main())


def jobs(pool: ThreadPoolExecutor) -> Callable[[], None]:
    def work() -> None:
        for _ in range(JOBS):
            pool.submit(int).result()

    return work


def takes(lock: Any) -> Callable[[], None]:
    def work() -> None:
        for _ in range(TAKES):
            with lock:
                pass

    return work


def contended(lock: Any) -> Callable[[], None]:
    def work() -> None:
        threads = [threading.Thread(target=takes(lock)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return work


def main() -> None:
    pool = ThreadPoolExecutor(1)
    job = jobs(pool)
    plain, noted = _thread.allocate_lock(), threading.Lock()
    if type(noted) is type(plain):
        sys.exit("Locks are not noted here: there is no compiler, or no header of Python.")
    cases: dict[str, tuple[int, dict[str, Callable[[], None]]]] = {
        "gather": (CALLS, {"off": without_points(gather), "on": gather}),
        "job": (JOBS, {"off": without_points(job), "on": job}),
        "lock": (TAKES, {"off": takes(plain), "on": takes(noted)}),
        "contended": (TAKES * THREADS, {"off": contended(plain), "on": contended(noted)}),
    }
    took: dict[str, dict[str, list[float]]] = {}
    for case in sys.argv[2:]:
        count, ways = cases[case]
        figures = took[case] = {way: [] for way in ways}
        for number in range(ROUNDS[case]):
            # In turn, and the other way round every other time: what the machine does beside is shared.
            for way in sorted(ways, reverse=bool(number % 2)):
                figures[way].append(of_process(ways[way], count))
    print(json.dumps(took))


if __name__ == "__main__":
    main()
