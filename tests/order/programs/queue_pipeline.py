"""Three stages with queues between them: answers and short timers arrive in neighbouring iterations of the loop."""

import asyncio
import sys

import httpx

URL = sys.argv[1]
WORKERS, ITEMS = 3, 15


async def feed(items):
    for n in range(ITEMS):
        await items.put(n)
    for _ in range(WORKERS):
        await items.put(None)


async def fetch(client, items, fetched, worker):
    while (n := await items.get()) is not None:
        await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 20})
        print("worker", worker, "has fetched", n)
        await fetched.put(n)
    await fetched.put(None)


async def parse(fetched, parsed):
    ends = 0
    while ends < WORKERS:
        n = await fetched.get()
        if n is None:
            ends += 1
        else:
            await asyncio.sleep(n * 13 % 10 / 1000)
            await parsed.put(n)
    await parsed.put(None)


async def show(parsed):
    while (n := await parsed.get()) is not None:
        print("parsed", n)


async def main():
    items, fetched, parsed = asyncio.Queue(maxsize=4), asyncio.Queue(maxsize=2), asyncio.Queue()
    async with httpx.AsyncClient() as client:
        workers = (fetch(client, items, fetched, n) for n in range(WORKERS))
        await asyncio.gather(feed(items), *workers, parse(fetched, parsed), show(parsed))


asyncio.run(main())
