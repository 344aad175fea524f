"""The first of three calls wins; the others are cancelled."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def ask(client, n):
    try:
        answer = await client.get(f"{URL}/wait", params={"n": n, "ms": 15})
    except asyncio.CancelledError:
        print(n, "cancelled")
        raise
    return answer.json()["n"]


async def main():
    async with httpx.AsyncClient() as client:
        for turn in range(3):
            tasks = [asyncio.create_task(ask(client, turn * 3 + n)) for n in range(3)]
            done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            print("winner", sorted(task.result() for task in done))


asyncio.run(main())
