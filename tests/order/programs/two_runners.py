"""Two event loops one after the other, context variables, callbacks of futures, async generators that are closed."""

import asyncio
import contextvars
import sys

import aiohttp

URL = sys.argv[1]
who = contextvars.ContextVar("who", default="no one")


async def ask(session, n):
    token = who.set(f"asker {n}")
    async with session.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30}) as answer:
        print(who.get(), (await answer.json())["n"])
    asyncio.get_running_loop().call_soon(lambda: print("soon", who.get()))
    await asyncio.sleep(0)
    who.reset(token)
    print("then", who.get(), n)
    return n


async def ticks(name, seconds):
    try:
        while True:
            await asyncio.sleep(seconds)
            yield name
    finally:
        print("closed", name)


async def tick(name, seconds, most):
    async for one in ticks(name, seconds):
        print("tick", one)
        most -= 1
        if not most:
            return


async def main(first):
    async with aiohttp.ClientSession() as session:
        tasks = [asyncio.create_task(ask(session, n)) for n in range(first, first + 6)]
        for one in tasks:
            one.add_done_callback(lambda done: print("called back", done.result()))
        await asyncio.gather(*tasks, tick("short", 0.004, 4), tick("long", 0.009, 2))


asyncio.run(main(0))
print("between")
asyncio.run(main(10))
