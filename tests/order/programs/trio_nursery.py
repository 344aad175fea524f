"""A nursery of trio with a deadline."""

import sys

import httpx
import trio

URL = sys.argv[1]


async def ask(client, n):
    with trio.move_on_after(0.05) as scope:
        answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 11})
        print("done", answer.json()["n"])
    if scope.cancelled_caught:
        print("late", n)


async def main():
    async with httpx.AsyncClient() as client, trio.open_nursery() as nursery:
        for n in range(8):
            nursery.start_soon(ask, client, n)


trio.run(main)
