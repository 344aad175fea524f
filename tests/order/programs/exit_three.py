"""`sys.exit(3)` after an answer of 500."""

import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

import requests

URL = sys.argv[1]


def ask(n):
    params = {"n": n, "ms": n * 5 % 20, "status": 500 if n == 3 else 200}
    return n, requests.get(f"{URL}/wait", params=params, timeout=10).status_code


with ThreadPoolExecutor(4) as pool:
    for job in as_completed([pool.submit(ask, n) for n in range(6)]):
        n, status = job.result()
        print(n, status)
        if status == 500:
            print("the service failed", file=sys.stderr)
            sys.exit(3)
