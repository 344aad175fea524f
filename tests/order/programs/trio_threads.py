"""Threads of trio: jobs that end at about the same time, jobs that call back, and threads that trio did not start."""

import sys
import threading
import time

import httpx
import trio

URL = sys.argv[1]
lock = threading.Lock()
totals = [0]


def work(n):
    time.sleep(n * 7 % 11 / 1000)
    with lock:
        totals.append(totals[-1] + n)
        seen = totals[-1]
    return n, seen


def ask(n):
    trio.from_thread.run_sync(print, "asks", n)
    answer = httpx.get(f"{URL}/wait?n={n}&ms={n * 5 % 13}").json()["n"]
    trio.from_thread.run(tell, n)
    return answer


async def tell(n):
    await trio.sleep(0.001)
    print("told", n)


async def job(n):
    print("worked", *await trio.to_thread.run_sync(work, n))
    print("asked", n, await trio.to_thread.run_sync(ask, n))
    print("again", *await trio.to_thread.run_sync(work, n))


async def ticker():
    for n in range(12):
        await trio.sleep(0.004)
        print("tick", n)


async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ticker)
        for n in range(8):
            nursery.start_soon(job, n)
    token = trio.lowlevel.current_trio_token()
    done = trio.Event()
    left = 4

    def end(n):
        nonlocal left
        print("from outside", n)
        left -= 1
        if not left:
            done.set()

    def outside(n):
        time.sleep(n * 3 % 4 / 1000)
        trio.from_thread.run_sync(end, n, trio_token=token)

    for n in range(4):
        threading.Thread(target=outside, args=(n,)).start()
    await done.wait()
    print("total", totals[-1])


trio.run(main)
