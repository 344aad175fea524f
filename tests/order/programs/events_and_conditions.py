"""Threads that wait for events, conditions, semaphores and barriers."""

import sys
import threading

import requests

URL = sys.argv[1]
ready = threading.Event()
condition = threading.Condition()
slots = threading.Semaphore(2)
barrier = threading.Barrier(4)
items = []


def work(n):
    ready.wait()
    with slots:
        print(n, "has a slot")
        requests.get(f"{URL}/wait", params={"n": n, "ms": n * 3 % 10}, timeout=10)
        print(n, "leaves the slot")
    place = barrier.wait()
    with condition:
        items.append(n)
        condition.notify()
    print(n, "passed the barrier", place >= 0)


threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
ready.set()
with condition:
    for count in range(1, 5):
        condition.wait_for(lambda: len(items) >= count, timeout=10)
        print("items", sorted(items))
        if len(items) == 4:
            break
for thread in threads:
    thread.join()
