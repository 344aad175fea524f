"""Threads that share a SQLite file and a progress bar of rich; then processes whose pipes one program waits for."""

import multiprocessing
import os
import sqlite3
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import wait

import requests
from rich.console import Console
from rich.progress import Progress

URL = sys.argv[1]


def ask(n):
    return requests.get(f"{URL}/wait", params={"n": n, "ms": n % 3}, timeout=10).json()["n"]


def rows():
    path = os.path.join(tempfile.mkdtemp(), "rows.db")
    with sqlite3.connect(path) as database:
        database.execute("create table rows (id integer primary key autoincrement, n)")

    def insert(lane):
        for n in range(3):
            value = ask(lane * 10 + n)
            connection = sqlite3.connect(path, timeout=10)
            with connection:
                connection.execute("insert into rows (n) values (?)", (value,))
            connection.close()

    threads = [threading.Thread(target=insert, args=(lane,)) for lane in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(*sqlite3.connect(path).execute("select id, n from rows order by id"))


def progress():
    console = Console(file=sys.stdout, force_terminal=False, width=80)
    with Progress(console=console) as bar:
        task = bar.add_task("ask", total=8)

        def work(n):
            console.print("got", ask(n))
            bar.advance(task)

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(work, range(8)))


def echo(pipe):
    while (n := pipe.recv()) is not None:
        pipe.send((n, os.getpid() > 0))


def pipes():
    ends = []
    for number in range(3):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=echo, args=(theirs,))
        process.start()
        ends.append((ours, process))
        for n in range(3):
            ours.send(number * 10 + n)
    left = 9
    while left:
        for one in wait([ours for ours, _ in ends]):
            print("received", one.recv())
            left -= 1
    print("more", [ours.poll() for ours, _ in ends])
    for ours, process in ends:
        ours.send(None)
        process.join()


if __name__ == "__main__":
    rows()
    progress()
    pipes()
