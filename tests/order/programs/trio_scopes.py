"""Deadlines of trio inside of each other: around sleeps, calls, threads and nurseries, some changed while they run."""

import sys
import time

import httpx
import trio

URL = sys.argv[1]


async def ask(client, n, ms):
    try:
        with trio.fail_after(0.06):
            answer = await client.get(f"{URL}/wait", params={"n": n, "ms": ms})
            print("got", answer.json()["n"])
    except trio.TooSlowError:
        print("late", n)


async def tick(n, k):
    try:
        for step in range(6):
            await trio.sleep(0.006 * (k + 1))
            print("tick", n, k, step)
    finally:
        print("end", n, k)


async def slow(n):
    with trio.move_on_after(0.02 * (n + 1)) as scope:
        async with trio.open_nursery() as nursery:
            for k in range(3):
                nursery.start_soon(tick, n, k)
            if n == 1:
                await trio.sleep(0.01)
                scope.deadline += 0.03
    print("scope", n, scope.cancelled_caught)


def block(n):
    time.sleep(0.01 * n)
    return n


async def work(n):
    with trio.move_on_after(0.025):
        print("worked", await trio.to_thread.run_sync(block, n, abandon_on_cancel=True))
        return
    print("abandoned", n)


async def main():
    async with httpx.AsyncClient() as client:
        with trio.move_on_after(0.5):
            async with trio.open_nursery() as nursery:
                for n in range(5):
                    nursery.start_soon(ask, client, n, n * 23 % 90)
                for n in range(3):
                    nursery.start_soon(slow, n)
                with trio.move_on_after(0.03):
                    await trio.sleep_forever()
                print("inner over")
        async with trio.open_nursery() as nursery:
            for n in range(5):
                nursery.start_soon(work, n)


trio.run(main)
