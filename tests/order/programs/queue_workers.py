"""Worker threads on a `queue.Queue`."""

import queue
import sys
import threading

import requests

URL = sys.argv[1]
jobs = queue.Queue()
results = queue.Queue()


def work(name):
    while (n := jobs.get()) is not None:
        answer = requests.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30}, timeout=10)
        print(name, "did", n)
        results.put((name, answer.json()["n"]))


threads = [threading.Thread(target=work, args=(f"worker-{n}",)) for n in range(4)]
for thread in threads:
    thread.start()
for n in range(12):
    jobs.put(n)
for _ in threads:
    jobs.put(None)
for _ in range(12):
    print("result", *results.get())
for thread in threads:
    thread.join()
