"""Threads that log to stderr and stdout, each through a handler with a lock of its own."""

import logging
import sys
from concurrent.futures import ThreadPoolExecutor

import requests

URL = sys.argv[1]

logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s %(message)s")
own = logging.getLogger("own")
own.addHandler(logging.StreamHandler(sys.stdout))


def ask(n):
    own.info("asks %d", n)
    answer = requests.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 20}, timeout=10)
    own.info("answer %s", answer.json()["n"])


with ThreadPoolExecutor(4) as pool:
    list(pool.map(ask, range(12)))
