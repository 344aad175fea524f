"""Tasks of trio send answers through a channel without a buffer; a stream is cut by a deadline."""

import sys

import httpx
import trio

URL = sys.argv[1]


async def fetch(client, n, channel):
    async with channel:
        answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 20})
        await channel.send(answer.json()["n"])


async def main():
    async with httpx.AsyncClient() as client:
        sender, receiver = trio.open_memory_channel(0)
        async with trio.open_nursery() as nursery:
            async with sender:
                for n in range(8):
                    nursery.start_soon(fetch, client, n, sender.clone())
            async for n in receiver:
                print("received", n)
        with trio.move_on_after(0.05) as scope:
            async with client.stream("GET", f"{URL}/sse", params={"pieces": 20, "ms": 6}) as answer:
                async for line in answer.aiter_lines():
                    if line:
                        print(line)
        print("cut", scope.cancelled_caught)


trio.run(main)
