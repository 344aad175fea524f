"""Callbacks of jobs print in the threads of the pool, while the program waits for the jobs."""

import sys
from concurrent.futures import ThreadPoolExecutor, wait

import requests

URL = sys.argv[1]
ended = []


def ask(n):
    requests.get(f"{URL}/wait", params={"n": n, "ms": n % 3}, timeout=10)
    return n


def show(job):
    ended.append(job.result())
    print("job", job.result(), "has ended", flush=True)


with ThreadPoolExecutor(6) as pool:
    jobs = [pool.submit(ask, n) for n in range(18)]
    for job in jobs:
        job.add_done_callback(show)
    print("done", len(wait(jobs).done))
print(ended)
