"""A `multiprocessing` spawn pool with `imap_unordered`."""

import multiprocessing
import sys
import urllib.request


def ask(n):
    with urllib.request.urlopen(f"{sys.argv[1]}/wait?n={n}&ms={n * 7 % 30}") as answer:
        return n, len(answer.read())


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        for n, size in pool.imap_unordered(ask, range(8)):
            print("done", n, size)
