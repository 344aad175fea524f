"""Pools of threads inside `asyncio.to_thread`, beside tasks that share a condition and a semaphore."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
import requests

URL = sys.argv[1]


def batch(number):
    def one(n):
        answer = requests.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 20}, timeout=10)
        print("batch", number, "got", answer.json()["n"])
        return n

    with ThreadPoolExecutor(3) as pool:
        return number, list(pool.map(one, range(number, number + 4)))


async def share():
    condition, limit, items = asyncio.Condition(), asyncio.Semaphore(2), []

    async def produce(client, n):
        async with limit:
            answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 5 % 20})
        async with condition:
            items.append(answer.json()["n"])
            condition.notify()

    async def consume(name):
        for _ in range(3):
            async with condition:
                await condition.wait_for(lambda: items)
                print(name, "took", items.pop())

    async with httpx.AsyncClient() as client:
        await asyncio.gather(
            *(consume(name) for name in "abc"), *(produce(client, n) for n in range(9))
        )


async def main():
    await share()
    for done in asyncio.as_completed([asyncio.to_thread(batch, n) for n in range(3)]):
        print("done", *(await done))


asyncio.run(main())
