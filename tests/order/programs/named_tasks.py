"""Tasks with names of their own in sets of `asyncio.wait` and `asyncio.all_tasks`."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def ask(client, n):
    return (await client.get(f"{URL}/wait", params={"n": n, "ms": n % 3})).json()["n"]


async def main():
    async with httpx.AsyncClient() as client:
        tasks = {asyncio.create_task(ask(client, n), name=f"ask {n}") for n in range(12)}
        while tasks:
            done, tasks = await asyncio.wait(tasks, timeout=0.02)
            print(*[(one.get_name(), one.result()) for one in done])
        rest = [asyncio.create_task(asyncio.sleep(9), name=f"sleep {n}") for n in range(5)]
        await asyncio.sleep(0)
        for one in asyncio.all_tasks() - {asyncio.current_task()}:
            print("left", one.get_name())
            one.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


asyncio.run(main())
