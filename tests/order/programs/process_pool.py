"""`ProcessPoolExecutor` and `as_completed`."""

import multiprocessing
import sys
import urllib.request
from concurrent.futures import ProcessPoolExecutor, as_completed


def ask(n, url):
    with urllib.request.urlopen(f"{url}/wait?n={n}&ms={n * 7 % 30}") as answer:
        return n, len(answer.read())


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(3, mp_context=context) as pool:
        jobs = [pool.submit(ask, n, sys.argv[1]) for n in range(8)]
        for job in as_completed(jobs):
            print("done", *job.result())
