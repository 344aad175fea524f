"""A tool in a thread fails; the traceback ends the program."""

import sys
from concurrent.futures import ThreadPoolExecutor

import requests

URL = sys.argv[1]


def ask(n):
    answer = requests.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30}, timeout=10).json()
    if n == 4:
        raise KeyError(f"no tool {answer['n']}")
    print("done", n)


with ThreadPoolExecutor(3) as pool:
    list(pool.map(ask, range(8)))
