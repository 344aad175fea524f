"""Threads that wait with timeouts: for futures, events, conditions, queues and each other."""

import concurrent.futures
import queue
import sys
import threading

import httpx

URL = sys.argv[1]
items = queue.Queue(maxsize=2)
bell = threading.Event()


def ask(n):
    answer = httpx.get(f"{URL}/wait", params={"n": n, "ms": n * 19 % 70})
    items.put(n)
    if n == 4:
        bell.set()
    return answer.json()["n"]


def collect():
    while True:
        try:
            n = items.get(timeout=0.05)
        except queue.Empty:
            print("idle")
            if done.is_set():
                return
            continue
        print("item", n)


done = threading.Event()
collector = threading.Thread(target=collect)
collector.start()
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    jobs = [pool.submit(ask, n) for n in range(8)]
    print("bell", bell.wait(0.03))
    for job in jobs:
        try:
            print("result", job.result(timeout=0.02))
        except concurrent.futures.TimeoutError:
            print("not yet")
done.set()
collector.join()
