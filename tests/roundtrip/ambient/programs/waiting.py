"""Waits in every way for tenths of seconds, and says what came of it."""
# ruff: noqa: TID251, PLW1510  it sleeps: that is what it is about

import asyncio
import concurrent.futures
import queue
import subprocess
import threading
import time

BEGAN = time.monotonic()


def say(*words):
    print(*words, flush=True)


async def in_a_loop():
    async def tick():
        for number in range(5):
            await asyncio.sleep(0.1)
            say("tick", number)

    async def slow():
        await asyncio.sleep(0.35)
        say("slow")

    await asyncio.gather(tick(), slow())
    for seconds, timeout in ((5, 0.2), (0.05, 5)):
        try:
            await asyncio.wait_for(asyncio.sleep(seconds), timeout)
            say("slept", seconds)
        except asyncio.TimeoutError:
            say("timed out", seconds)
    # A timeout around a thread and around a child, with sleeps that cost nothing.
    say(await asyncio.wait_for(asyncio.to_thread(lambda: (time.sleep(0.05), "thread")[1]), 0.5))
    child = await asyncio.create_subprocess_exec("sleep", "0.1")
    say("child", await asyncio.wait_for(child.wait(), 5))
    child = await asyncio.create_subprocess_exec("sleep", "20")
    try:
        await asyncio.wait_for(child.wait(), 0.3)
    except asyncio.TimeoutError:
        child.kill()
        say("child timed out", await child.wait())


def in_threads():
    event = threading.Event()
    say(event.wait(0.2))
    threading.Timer(0.1, event.set).start()
    say(event.wait(5))
    items = queue.Queue()
    try:
        items.get(timeout=0.2)
    except queue.Empty:
        say("empty")
    lock = threading.Lock()
    lock.acquire()
    say(lock.acquire(timeout=0.2))

    def worker(number):
        time.sleep(0.1 * number)
        say("worker", number)
        return number

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(worker, number) for number in (3, 1, 2)]
        say([one.result() for one in concurrent.futures.as_completed(futures, timeout=5)])
    try:
        subprocess.run(["sleep", "20"], timeout=0.4)
    except subprocess.TimeoutExpired:
        say("expired")
    say(subprocess.run(["sleep", "0.2"], timeout=10).returncode)


time.sleep(0.3)
asyncio.run(in_a_loop())
in_threads()
say(round(time.monotonic() - BEGAN, 6))
