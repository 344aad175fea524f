"""The tools of anyio_threads on trio: workers that call back into the loop, a limiter, and a deadline."""

import sys
import time

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import httpx

URL = sys.argv[1]


def tool(n):
    anyio.from_thread.run_sync(print, "begin", n)
    time.sleep(n * 5 % 9 / 1000)
    answer = httpx.get(f"{URL}/wait?n={n}&ms={n * 7 % 15}").json()["n"]
    anyio.from_thread.run(show, n)
    return answer


async def show(n):
    await anyio.lowlevel.checkpoint()
    print("show", n)


async def call(n, limiter, results):
    answer = await anyio.to_thread.run_sync(tool, n, limiter=limiter)
    await results.send((n, answer))


async def main():
    send, receive = anyio.create_memory_object_stream(2)
    limiter = anyio.CapacityLimiter(3)
    async with anyio.create_task_group() as group:
        for n in range(8):
            group.start_soon(call, n, limiter, send)
        for _ in range(8):
            with anyio.move_on_after(0.01) as scope:
                print("got", *await receive.receive())
            if scope.cancelled_caught:
                print("late")
                print("got", *await receive.receive())


anyio.run(main, backend="trio")
