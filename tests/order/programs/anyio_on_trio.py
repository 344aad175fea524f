"""Cancel scopes of anyio on trio, around calls and around groups of tasks."""

import sys

import anyio
import httpx

URL = sys.argv[1]


async def ask(client, n, ms):
    try:
        with anyio.fail_after(0.05):
            got = (await client.get(f"{URL}/wait", params={"n": n, "ms": ms})).json()["n"]
            print("got", got)
    except TimeoutError:
        print("late", n)


async def slow(n):
    with anyio.move_on_after(0.02 * (n + 1)) as scope:
        async with anyio.create_task_group() as group:
            for k in range(3):
                group.start_soon(tick, n, k)
    print("scope", n, scope.cancelled_caught)


async def tick(n, k):
    try:
        for step in range(10):
            await anyio.sleep(0.007 * (k + 1))
            print("tick", n, k, step)
    finally:
        print("end", n, k)


async def main():
    async with httpx.AsyncClient() as client:
        with anyio.move_on_after(0.3):
            async with anyio.create_task_group() as group:
                for n in range(6):
                    group.start_soon(ask, client, n, n * 17 % 90)
                for n in range(3):
                    group.start_soon(slow, n)
                with anyio.move_on_after(0.03):
                    await anyio.sleep(1)
                print("inner over")


anyio.run(main, backend="trio")
