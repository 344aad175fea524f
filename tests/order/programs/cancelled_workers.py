"""Workers on an `asyncio.Queue`: one ends by a sentinel, the others are cancelled in the middle of their calls."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def work(name, items, client):
    try:
        while (n := await items.get()) is not None:
            answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30})
            print(name, "got", answer.json()["n"])
            items.task_done()
        print(name, "was told to end")
    except asyncio.CancelledError:
        print(name, "was cancelled")
        raise


async def main():
    items = asyncio.Queue()
    async with httpx.AsyncClient(timeout=30) as client:
        workers = [asyncio.create_task(work(name, items, client)) for name in "abcd"]
        for n in range(12):
            items.put_nowait(n)
        await items.join()
        for n in (None, 12, 13, 14):
            items.put_nowait(n)
        await asyncio.sleep(0.012)
        for one in workers:
            one.cancel()
        ends = await asyncio.gather(*workers, return_exceptions=True)
        print([type(one).__name__ for one in ends], items.qsize())


asyncio.run(main())
