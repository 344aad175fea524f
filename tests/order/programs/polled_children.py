"""Children that threads poll, terminate and wait for with timeouts, some after their end."""

import subprocess
import threading
import time


def watch(n):
    child = subprocess.Popen(["sleep", f"0.0{n * 3}"])
    polls = 0
    while child.poll() is None and polls < 4:
        polls += 1
        time.sleep(0.01)
    child.terminate()
    print(n, polls, child.wait(), flush=True)


def expire(n):
    child = subprocess.Popen(["sh", "-c", f"sleep 0.0{n * 2}; exit {n}"])
    try:
        print("code", n, child.wait(timeout=0.03), flush=True)
    except subprocess.TimeoutExpired:
        child.kill()
        print("killed", n, child.wait(), flush=True)


threads = [threading.Thread(target=watch, args=(n,)) for n in range(4)]
threads += [threading.Thread(target=expire, args=(n,)) for n in range(4)]
for one in threads:
    one.start()
for one in threads:
    one.join()
