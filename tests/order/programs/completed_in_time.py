"""`asyncio.as_completed` and `asyncio.wait` with timeouts, shielded calls that end late."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def ask(client, n):
    answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 11 % 60})
    return answer.json()["n"]


async def main():
    async with httpx.AsyncClient(timeout=30) as client:
        tasks = [asyncio.create_task(ask(client, n)) for n in range(8)]
        try:
            for one in asyncio.as_completed(tasks, timeout=0.035):
                print("in time", await one)
        except asyncio.TimeoutError:
            print("late", sum(not one.done() for one in tasks))
        done, pending = await asyncio.wait(tasks, timeout=0.01)
        print("then", len(done), len(pending))
        for one in pending:
            one.cancel()
        print(await asyncio.gather(*tasks, return_exceptions=True))
        kept = asyncio.create_task(ask(client, 5))
        for n in range(4):
            try:
                print("kept", await asyncio.wait_for(asyncio.shield(kept), 0.018))
                break
            except asyncio.TimeoutError:
                print("not yet", n)


asyncio.run(main())
