"""Workers in copied contexts on a `PriorityQueue` to which they add work themselves."""

import contextvars
import queue
import sys
import threading

import requests

URL = sys.argv[1]
jobs, results = queue.PriorityQueue(), queue.LifoQueue()


def work(name):
    while True:
        priority, n = jobs.get()
        if n < 0:
            jobs.task_done()
            return
        requests.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 20}, timeout=10)
        print(name, "did", n, "of", priority)
        results.put((name, n))
        if n < 8:
            jobs.put((n % 5, n + 10))
        jobs.task_done()


for n in range(8):
    jobs.put((n % 3, n))
threads = [
    threading.Thread(target=contextvars.copy_context().run, args=(work, name)) for name in "abc"
]
for thread in threads:
    thread.start()
jobs.join()
for _ in threads:
    jobs.put((99, -1))
for thread in threads:
    thread.join()
print([results.get() for _ in range(results.qsize())])
