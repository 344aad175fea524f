"""Fork busy runs, one after the other, and kill each with all its processes at a random moment.

    killed.py STORE COUNT SEED

Each run has threads and child processes that record as fast as they can, inside a turn and a tool
call that never end. Whoever has recorded an event says so through a pipe *after* `emit` returned:
what came through the pipe was acknowledged before the kill. Prints a line for each run:
its id, and the file with its acknowledgements.
"""

import os
import random
import select
import signal
import struct
import sys
import threading
import time
from pathlib import Path

import playhead
from playhead.recording import deck
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.calls import Call

ACK = struct.Struct("<IIII")  # pid, seq, worker, n


def busy(store, run_id, pipe):
    with (
        playhead.record(store=store, run_id=run_id, name="busy") as run,
        run.turn("respond") as turn,
    ):
        turn.seam("ready")
        call = Call(boundary="tool", name="search the world", request={"q": 1})
        deck.declared().perform(call, FunctionAdapter(lambda: search(run, pipe)))


def search(run, pipe):
    for worker in range(2):
        if os.fork() == 0:
            work(run, 100 + worker, pipe)
    threads = [threading.Thread(target=work, args=(run, n, pipe)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def work(run, worker, pipe):
    n = 0
    while True:
        seq = run.emit("x", {"worker": worker, "n": n, "text": "some words " * (n % 40)})
        os.write(pipe, ACK.pack(os.getpid(), seq, worker, n))
        n += 1


def kill_one(store, run_id, chance):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(read)
        try:
            busy(store, run_id, write)
        finally:
            os._exit(1)
    os.close(write)
    # One in five dies on its way up, the others at any moment of their work.
    heard = bytearray() if chance.random() < 0.2 else bytearray(os.read(read, 1 << 16))
    until = time.monotonic() + chance.uniform(0.0, 0.05)
    while (left := until - time.monotonic()) > 0:
        if select.select([read], [], [], left)[0]:
            heard += os.read(read, 1 << 16)
    os.killpg(child, signal.SIGKILL) if is_leader(child) else os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while piece := os.read(read, 1 << 16):  # until the last of them is gone
        heard += piece
    os.close(read)
    return bytes(heard)


def is_leader(child):
    return os.getpgid(child) == child


def main():
    store, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    with playhead.record(
        store=store, run_id=f"warm-{seed}"
    ) as run:  # imports once, not once a child
        run.emit("x", {})
    for number in range(count):
        run_id = f"killed-{seed}-{number}"
        heard = kill_one(store, run_id, chance)
        acks = store / f"{run_id}.acks"
        acks.write_bytes(heard)
        print(run_id, acks, flush=True)


if __name__ == "__main__":
    main()
