"""Threads that change memory under a lock and print nothing: the order is seen at the end only."""

import threading
import time

lock = threading.Lock()
seen = []


def work(n):
    for step in range(20):
        with lock:
            seen.append(n)
            if len(seen) % 7 == n:
                time.sleep(0.0005)
        if step % 5 == n % 5:
            time.sleep(0.001)


threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(seen)
