"""`ThreadPoolExecutor` and `as_completed` with requests."""

import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

import requests

URL = sys.argv[1]


def ask(n):
    return requests.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30}, timeout=10).json()["n"]


with ThreadPoolExecutor(5) as pool:
    jobs = {pool.submit(ask, n): n for n in range(10)}
    for job in as_completed(jobs):
        print("done", jobs[job], job.result())
