"""Threads of a pool that take one lock in two places, print under it at times, and keep a total."""

import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

import requests

URL = sys.argv[1]
lock, nested = threading.Lock(), threading.RLock()
tries, order, counts = {}, [], []


def ask(n):
    answer = requests.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 20}, timeout=10).json()
    with lock:
        tries[n] = tries.get(n, 0) + 1
        if random.random() < 0.3 and tries[n] < 3:
            print("again", n)
            return ask_again(n)
    said = subprocess.run(["echo", str(n)], capture_output=True, text=True, check=True).stdout
    with nested, nested:
        counts.append(n)
        print("count", len(counts))
    with lock:
        order.append(n)
        print(n, answer["n"], said.strip(), len(order))
    return n


def ask_again(n):
    order.append(-n)
    return -n


with ThreadPoolExecutor(5) as pool:
    for done in as_completed([pool.submit(ask, n) for n in range(12)]):
        print("got", done.result())
print(order, counts)
