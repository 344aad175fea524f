"""A pool whose processes come from a fork server."""

import multiprocessing
import sys

import requests

URL = sys.argv[1]


def ask(n):
    return requests.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30}, timeout=10).json()["n"]


if __name__ == "__main__":
    with multiprocessing.get_context("forkserver").Pool(3) as pool:
        for got in pool.imap_unordered(ask, range(8)):
            print("got", got)
