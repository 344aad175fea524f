"""Producer and consumers on an `asyncio.Queue`."""

import asyncio
import sys

import httpx

URL = sys.argv[1]


async def consume(client, name, jobs):
    while True:
        n = await jobs.get()
        answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 20})
        print(name, "did", answer.json()["n"])
        jobs.task_done()


async def produce(client, jobs):
    for n in range(12):
        await jobs.put(n)
        if n % 4 == 3:
            await client.get(f"{URL}/wait", params={"n": f"p{n}", "ms": 10})
            print("produced", n)


async def main():
    jobs = asyncio.Queue(3)
    async with httpx.AsyncClient() as client:
        workers = [asyncio.create_task(consume(client, f"w{n}", jobs)) for n in range(3)]
        await produce(client, jobs)
        await jobs.join()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


asyncio.run(main())
