"""`asyncio.Semaphore`, `Condition`, `Event` and `Lock` around calls of httpx."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def main():
    limit, changed, ready, alone = (
        asyncio.Semaphore(3),
        asyncio.Condition(),
        asyncio.Event(),
        asyncio.Lock(),
    )
    results = []

    async def ask(client, n):
        async with limit:
            answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 25})
        async with changed:
            results.append(answer.json()["n"])
            print("asked", n)
            changed.notify(2)
        if len(results) >= 5:
            ready.set()
        async with alone:
            await asyncio.sleep(0.001)
            print("alone", n)

    async def watch(name, least):
        async with changed:
            await changed.wait_for(lambda: len(results) >= least)
            print(name, "saw", len(results))
            changed.notify_all()

    async def late():
        await ready.wait()
        print("ready", results[:5])

    async with httpx.AsyncClient(timeout=30) as client:
        watchers = (watch(f"watcher {least}", least) for least in (2, 4, 6))
        await asyncio.gather(*watchers, late(), *(ask(client, n) for n in range(10)))


asyncio.run(main())
