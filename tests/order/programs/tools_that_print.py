"""Tools that run at once; each prints, works in a thread, runs a process and asks a server."""

import asyncio
import sys

import httpx

import playhead

URL = sys.argv[1]


@playhead.tool
async def look(n):
    print("look", n, flush=True)
    text = await asyncio.to_thread(len, "x" * n)
    async with httpx.AsyncClient() as client:
        await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30})
    print("looked", n, text, file=sys.stderr)
    process = await asyncio.create_subprocess_exec("echo", str(n), stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    print("said", said.decode().strip(), flush=True)
    return n


@playhead.tool
async def count(n):
    for at in range(n):
        print("count", n, at)
        await asyncio.sleep(0.005)
        yield at


async def counted(n):
    return [at async for at in count(n)]


async def main():
    for one in asyncio.as_completed([*(look(n) for n in range(5)), *(counted(n) for n in (2, 4))]):
        print("done", await one)


asyncio.run(main())
