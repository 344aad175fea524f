"""Workers log through a `QueueHandler`; a listener thread prints their lines."""

import logging
import logging.handlers
import queue
import random
import sys
import threading
import time

import requests

URL = sys.argv[1]
items, lines = queue.Queue(), queue.Queue()
listener = logging.handlers.QueueListener(lines, logging.StreamHandler(sys.stdout))
listener.start()
log = logging.getLogger("workers")
log.addHandler(logging.handlers.QueueHandler(lines))
log.setLevel(logging.INFO)


def work(name):
    while (n := items.get()) is not None:
        for attempt in range(3):
            answer = requests.get(
                f"{URL}/flaky",
                params={"n": n, "attempt": attempt, "ms": random.randint(0, 9)},
                timeout=30,
            )
            if answer.ok:
                break
            log.info("retry %s %s by %s", n, attempt, name)
            time.sleep(0.001 * 2**attempt + random.random() * 0.002)
        log.info("worker %s item %s", name, n)
        items.task_done()
    items.task_done()


workers = [threading.Thread(target=work, args=(name,)) for name in range(4)]
for one in workers:
    one.start()
for n in range(16):
    items.put(n)
items.join()
for _ in workers:
    items.put(None)
for one in workers:
    one.join()
listener.stop()
