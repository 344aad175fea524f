"""A `multiprocessing.Queue` that three processes fill."""

import multiprocessing
import sys

import requests

URL = sys.argv[1]


def work(items, lane):
    for n in range(3):
        query = {"n": lane * 10 + n, "ms": n * 7 % 30}
        items.put((lane, requests.get(f"{URL}/wait", params=query, timeout=10).json()["n"]))
    items.put(None)


if __name__ == "__main__":
    items = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(items, lane)) for lane in range(3)]
    for one in workers:
        one.start()
    left = len(workers)
    while left:
        item = items.get()
        if item is None:
            left -= 1
        else:
            print("got", item)
    for one in workers:
        one.join()
