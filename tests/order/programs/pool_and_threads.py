"""A pool of processes whose results come by callbacks, while threads ask a server."""

import multiprocessing
import sys
import threading
import time

import requests

URL = sys.argv[1]


def square(n):
    time.sleep(0.002 * (n * 7 % 5))
    return n * n


def ask(n):
    answer = requests.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 20}, timeout=10)
    print("asked", answer.json()["n"], flush=True)


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
        results = [
            pool.apply_async(square, (n,), callback=lambda got: print("callback", got, flush=True))
            for n in range(6)
        ]
        for one in threads:
            one.start()
        print("first", results[0].get(5), flush=True)
        for got in pool.imap_unordered(square, range(6)):
            print("unordered", got, flush=True)
        for one in threads:
            one.join()
        print([one.get(5) for one in results], flush=True)
