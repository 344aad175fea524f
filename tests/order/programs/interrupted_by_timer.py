"""A timer interrupts the main thread in the middle of its calls."""

import os
import signal
import sys
import threading
import time

import requests

URL = sys.argv[1]
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
n = 0
while True:
    requests.get(f"{URL}/wait", params={"n": n, "ms": 5}, timeout=10)
    print("asked", n, flush=True)
    time.sleep(0.05)
    n += 1
