"""A program that works, is recorded, and has something done to its tape in the middle.

    host.py STORE FAULT

Prints its result, which no fault may change, and on the last line what recording told it: how many
of its events came back without a number.
"""

import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path

import playhead

STORE, FAULT = Path(sys.argv[1]), sys.argv[2]
EVENTS = 300


def work(run, said):
    """The program's own business: sums, in four threads."""
    results = [0] * 4

    def count(n):
        for i in range(EVENTS):
            results[n] += i * n
            said.append(run.emit("x", {"worker": n, "i": i, "text": "some words " * 8}))

    threads = [threading.Thread(target=count, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def fill(run):
    """The disk is full: what is left of a small one, or a limit on the size of files."""
    if FAULT.startswith("full-disk"):
        ballast = STORE / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 512)
            except OSError:
                return ballast.unlink if FAULT == "full-disk" else lambda: None
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    size = run.recorder.bytes_written
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, hard))
    if FAULT.endswith("for-good"):
        return lambda: None
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def make_read_only(run):
    run.path.chmod(0o500)
    said = [run.emit("large", "y" * 100_000 + str(n)) for n in range(3)]
    assert said == [None] * 3, said
    return lambda: run.path.chmod(0o700)


def delete(run):
    shutil.rmtree(run.path)
    return lambda: None


def close_all(run):
    os.closerange(3, 5000)
    return lambda: None


def close_all_and_reuse(run):
    os.closerange(3, 5000)
    # So many that one of them gets the number that the tape had.
    files = [(STORE / f"own-{n}").open("w+b", buffering=0) for n in range(900)]
    for file in files:
        file.write(b"of the host")

    def check():
        for file in files:
            file.seek(0)
            assert file.read() == b"of the host", file.name
            file.close()

    return check


def exhaust_the_stack(run):
    """An event from so deep down that there is no room left to record it."""
    lost = 0

    def down(n):
        nonlocal lost
        with contextlib.suppress(RecursionError):
            down(n + 1)
        if lost == 0:
            try:
                lost += run.emit("deep", {"a": [(n,)]}) is None
            except RecursionError:
                return

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    with contextlib.suppress(RecursionError):
        down(0)
    sys.setrecursionlimit(limit)
    return lambda: None


FAULTS = {
    "none": lambda run: lambda: None,
    "full-disk": fill,
    "full-disk-for-good": fill,
    "file-limit": fill,
    "file-limit-for-good": fill,
    "read-only": make_read_only,
    "read-only-from-the-start": lambda run: lambda: None,
    "deleted": delete,
    "closed": close_all,
    "reused": close_all_and_reuse,
    "stack": exhaust_the_stack,
}


def become_nobody():
    """To root no folder is read-only. Everything is imported before: nobody may not read it."""
    with tempfile.TemporaryDirectory() as folder, playhead.record(store=folder) as run:
        work(run, [])
        run.emit("large", "y" * 100_000)
    os.setgid(65534)
    os.setuid(65534)


def main():
    said = []
    if FAULT.startswith("read-only") and os.geteuid() == 0:
        become_nobody()
    with playhead.record(store=STORE, run_id="r", name="host") as run:
        first = work(run, said)
        undo = FAULTS[FAULT](run)
        second = work(run, said)
        undo()
        third = work(run, said)
    print(first, second, third)
    print(said.count(None))


if __name__ == "__main__":
    main()
