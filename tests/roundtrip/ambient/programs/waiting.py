"""Waits in every way for tenths of seconds (or as many times longer as its argument says), and prints what
came of it.
"""
# ruff: noqa: TID251, PLW1510  it sleeps: that is what it is about

import asyncio
import concurrent.futures
import queue
import subprocess
import sys
import threading
import time

BEGAN = time.monotonic()
# One second, unless the argument stretches it.
SECOND = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0


def say(*words):
    print(*words, flush=True)


async def in_a_loop():
    async def tick():
        for number in range(5):
            await asyncio.sleep(0.1 * SECOND)
            say("tick", number)

    async def slow():
        await asyncio.sleep(0.35 * SECOND)
        say("slow")

    await asyncio.gather(tick(), slow())
    for seconds, timeout in ((50, 0.2), (0.05, 50)):
        try:
            await asyncio.wait_for(asyncio.sleep(seconds * SECOND), timeout * SECOND)
            say("slept", seconds)
        except asyncio.TimeoutError:
            say("timed out", seconds)
    # A timeout around a thread and around a child, with sleeps that cost nothing.
    say(
        await asyncio.wait_for(
            asyncio.to_thread(lambda: (time.sleep(0.05 * SECOND), "thread")[1]), 5 * SECOND
        )
    )
    child = await asyncio.create_subprocess_exec("sleep", str(0.1 * SECOND))
    say("child", await asyncio.wait_for(child.wait(), 50))
    child = await asyncio.create_subprocess_exec("sleep", "200")
    try:
        await asyncio.wait_for(child.wait(), 0.3 * SECOND)
    except asyncio.TimeoutError:
        child.kill()
        say("child timed out", await child.wait())


def in_threads():
    event = threading.Event()
    say(event.wait(0.2 * SECOND))
    threading.Timer(0.1 * SECOND, event.set).start()
    say(event.wait(50))
    items = queue.Queue()
    try:
        items.get(timeout=0.2 * SECOND)
    except queue.Empty:
        say("empty")
    lock = threading.Lock()
    lock.acquire()
    say(lock.acquire(timeout=0.2 * SECOND))

    def worker(number):
        time.sleep(0.1 * number * SECOND)
        say("worker", number)
        return number

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(worker, number) for number in (3, 1, 2)]
        say([one.result() for one in concurrent.futures.as_completed(futures, timeout=50)])
    try:
        subprocess.run(["sleep", "200"], timeout=0.4 * SECOND)
    except subprocess.TimeoutExpired:
        say("expired")
    say(subprocess.run(["sleep", str(0.2 * SECOND)], timeout=100).returncode)


time.sleep(0.3 * SECOND)
asyncio.run(in_a_loop())
in_threads()
say(round(time.monotonic() - BEGAN, 6))
