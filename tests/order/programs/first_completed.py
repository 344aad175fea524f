"""Waits for the first of several jobs and computes in between, while further jobs end."""

import sys
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import requests

URL = sys.argv[1]


def ask(n):
    requests.get(f"{URL}/wait", params={"n": n, "ms": 8 * n}, timeout=10)
    return n


def compute(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


with ThreadPoolExecutor(9) as pool:
    jobs = {pool.submit(ask, n) for n in range(9)}
    while jobs:
        done, jobs = wait(jobs, timeout=0.012, return_when=FIRST_COMPLETED)
        print("done", sorted(job.result() for job in done), "left", len(jobs))
        compute(0.01)
