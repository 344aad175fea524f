"""A pool of workers that call tools and sleep between the calls: hours of it, if SLEEP says so.

session.py WORKERS CALLS SLEEP_SECONDS
"""

from __future__ import annotations

import sys
import threading
import time

import playhead


@playhead.tool(effect="write")
def run_step(worker: int, number: int) -> str:
    return f"worker {worker} has done step {number}"


def work(worker: int, calls: int, seconds: float) -> None:
    with playhead.lane(f"worker-{worker}"):
        for number in range(calls):
            run_step(worker, number)
            time.sleep(seconds)


def main(workers: int, calls: int, seconds: float) -> None:
    threads = [threading.Thread(target=work, args=(n, calls, seconds)) for n in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{workers * calls} steps done")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
