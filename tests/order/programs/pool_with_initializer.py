"""`concurrent.futures.wait` for the first job, a pool with an initializer, jobs that submit jobs, cancelled jobs."""

import sys
import threading
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, ThreadPoolExecutor, wait

import httpx

URL = sys.argv[1]
own = threading.local()


def prepare():
    own.client = httpx.Client(timeout=30)


def ask(n):
    answer = own.client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30})
    return answer.json()["n"]


def fail(n):
    ask(n)
    if n % 2:
        raise ValueError(n)
    return n


with ThreadPoolExecutor(3, initializer=prepare) as pool:
    pending = {pool.submit(ask, n) for n in range(6)}
    more = 6
    while pending:
        done, pending = wait(pending, return_when=FIRST_COMPLETED)
        for job in sorted(done, key=lambda job: job.result()):
            print("done", job.result())
            if more < 10:
                pending.add(pool.submit(ask, more))
                more += 1
    jobs = [pool.submit(fail, n) for n in range(20, 26)]
    done, pending = wait(jobs, return_when=FIRST_EXCEPTION)
    print("failed", [n for n, job in enumerate(jobs) if job in done])
    print("cancelled", [job.cancel() for job in jobs])
print("end")
