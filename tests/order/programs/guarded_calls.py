"""Calls of an event loop with semaphores, barriers in threads, shields and timeouts that are moved."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def ask(client, gate, n):
    async with gate:
        try:
            async with asyncio.timeout(0.03) as limit:
                if n % 3 == 0:
                    limit.reschedule(asyncio.get_running_loop().time() + 0.08)
                got = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 13 % 60})
                print("got", got.json()["n"])
        except TimeoutError:
            print("late", n)


async def shielded(client, n):
    inner = asyncio.ensure_future(client.get(f"{URL}/wait", params={"n": n, "ms": 40}))
    try:
        await asyncio.wait_for(asyncio.shield(inner), 0.02)
    except TimeoutError:
        print("left", n)
    print("shielded", (await inner).json()["n"])


async def main():
    async with httpx.AsyncClient() as client:
        gate = asyncio.Semaphore(3)
        async with asyncio.TaskGroup() as group:
            for n in range(9):
                group.create_task(ask(client, gate, n))
            for n in range(20, 23):
                group.create_task(shielded(client, n))


asyncio.run(main())
