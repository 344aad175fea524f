"""Memory object streams of anyio: two producers, three consumers, a limiter, worker threads."""

import subprocess
import sys

import anyio
import anyio.to_thread
import httpx

URL = sys.argv[1]


def count(text):
    done = subprocess.run(["echo", text], capture_output=True, text=True, check=True)
    return len(done.stdout)


async def produce(name, sender, client):
    async with sender:
        for n in range(5):
            params = {"n": f"{name}{n}", "ms": n * 7 % 20}
            answer = await client.get(f"{URL}/wait", params=params)
            await sender.send(answer.json()["n"])


async def consume(name, receiver, limiter):
    async with receiver:
        async for item in receiver:
            size = await anyio.to_thread.run_sync(count, item, limiter=limiter)
            print(name, "took", item, size)
    print(name, "is done")


async def main():
    sender, receiver = anyio.create_memory_object_stream(2)
    limiter = anyio.CapacityLimiter(2)
    async with (
        httpx.AsyncClient(timeout=30) as client,
        anyio.create_task_group() as group,
        sender,
        receiver,
    ):
        for name in "xy":
            group.start_soon(produce, name, sender.clone(), client)
        for name in "abc":
            group.start_soon(consume, name, receiver.clone(), limiter)
    print("all done")


anyio.run(main)
