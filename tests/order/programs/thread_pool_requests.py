"""`ThreadPoolExecutor` and `as_completed` with requests. The jobs log which worker runs them, through a queue; the last
jobs are cancelled before a worker takes them.
"""

import logging
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from logging.handlers import QueueHandler, QueueListener

import requests

URL = sys.argv[1]
own = threading.local()
records = queue.Queue()
log = logging.getLogger("pool")
log.addHandler(QueueHandler(records))
stream = logging.StreamHandler(sys.stdout)
stream.setFormatter(logging.Formatter("%(threadName)s %(message)s"))
listener = QueueListener(records, stream)
listener.start()


def ask(n):
    own.asked = getattr(own, "asked", 0) + 1
    log.warning("asks %d, its question %d", n, own.asked)
    return requests.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30}, timeout=10).json()["n"]


with ThreadPoolExecutor(5) as pool:
    jobs = {pool.submit(ask, n): n for n in range(10)}
    for job in as_completed(jobs):
        print("done", jobs[job], job.result())
    list(pool.map(ask, range(10, 18)))
listener.stop()

pool = ThreadPoolExecutor(2)
jobs = [pool.submit(time.sleep, 0.02) for _ in range(8)]
print("last is cancelled:", jobs[-1].cancel())
time.sleep(0.03)
pool.shutdown(cancel_futures=True)
print([job.cancelled() for job in jobs])
