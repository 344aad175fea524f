"""A thread polls a folder for changes while others write into it what they get from a server."""

import pathlib
import sys
import tempfile
import threading
import time

import requests

URL = sys.argv[1]
folder = pathlib.Path(tempfile.mkdtemp())
stopped = threading.Event()


def watch():
    seen = {}
    while True:
        is_last = stopped.is_set()
        now = {one.name: one.stat().st_size for one in folder.glob("*.txt")}
        for name in sorted(set(now) - set(seen)):
            print("new", name, now[name])
        seen = now
        if is_last:
            return
        time.sleep(0.004)


def write(n):
    for part in range(2):
        answer = requests.get(
            f"{URL}/wait", params={"n": f"{n}.{part}", "ms": (n + part) * 7 % 30}, timeout=30
        )
        (folder / f"{n}-{part}.part").write_text(answer.text)
        (folder / f"{n}-{part}.part").rename(folder / f"{n}-{part}.txt")


watcher = threading.Thread(target=watch)
writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
for one in (watcher, *writers):
    one.start()
for one in writers:
    one.join()
stopped.set()
watcher.join()
