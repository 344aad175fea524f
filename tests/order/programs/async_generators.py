"""Agents as asynchronous generators: tools run in threads while their events are merged through a queue."""

import asyncio
import subprocess
import sys

import httpx

URL = sys.argv[1]


def shell(n):
    got = subprocess.run(
        ["sh", "-c", f"sleep 0.0{n % 4}; echo {n}"], capture_output=True, text=True, check=True
    )
    return got.stdout.strip()


async def agent(client, n):
    yield f"start {n}"
    tools = [asyncio.to_thread(shell, n * 3 + k) for k in range(2)]
    call = client.get(f"{URL}/wait", params={"n": n, "ms": n * 11 % 30})
    for done in asyncio.as_completed([*tools, call]):
        got = await done
        yield f"{n} has {got if isinstance(got, str) else got.json()['n']}"
    yield f"end {n}"


async def pump(source, events):
    async for event in source:
        await events.put(event)
    await events.put(None)


async def main():
    events = asyncio.Queue()
    async with httpx.AsyncClient() as client:
        pumps = [asyncio.create_task(pump(agent(client, n), events)) for n in range(5)]
        left = len(pumps)
        while left:
            event = await events.get()
            if event is None:
                left -= 1
            else:
                print(event)


asyncio.run(main())
