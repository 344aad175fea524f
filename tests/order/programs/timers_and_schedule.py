"""`threading.Timer`, `sched` in a thread, a watchdog that is cancelled in time or not."""

import sched
import sys
import threading
import time

import requests

URL = sys.argv[1]
guard = threading.Lock()


def say(*words):
    with guard:
        print(*words)


def ask(n):
    params = {"n": n, "ms": n * 7 % 40}
    watchdog = threading.Timer(0.025, say, ("slow", n))
    watchdog.start()
    answer = requests.get(f"{URL}/wait", params=params, timeout=30)
    watchdog.cancel()
    say("asked", answer.json()["n"])


def scheduled():
    plan = sched.scheduler(time.monotonic, time.sleep)
    for n in range(5):
        plan.enter(0.006 * n, 1, say, ("planned", n))
        plan.enter(0.006 * n, 0, ask, (n,))
    plan.run()
    say("planned all")


threads = [threading.Thread(target=scheduled)]
threads += [threading.Timer(0.004 * n, ask, (10 + n,)) for n in range(6)]
for one in threads:
    one.start()
for one in threads:
    one.join()
say("end")
