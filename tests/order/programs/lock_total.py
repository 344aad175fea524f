"""Threads add to a total under a lock."""

import sys
import threading

import requests

URL = sys.argv[1]
lock = threading.Lock()
total = []


def add(n):
    for step in range(3):
        answer = requests.get(f"{URL}/wait", params={"n": n, "ms": (n * 7 + step) % 20}, timeout=10)
        with lock:
            total.append(answer.json()["n"])
            print("total", total[-5:])


threads = [threading.Thread(target=add, args=(n,)) for n in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(total)
