"""`as_completed` with timeouts, in a loop and then in a pool, after requests were cancelled."""

import asyncio
import concurrent.futures
import sys

import httpx
import requests

URL = sys.argv[1]


async def ask(client, n):
    answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 9 % 60})
    return answer.json()["n"]


async def main():
    async with httpx.AsyncClient() as client:
        tasks = [asyncio.create_task(ask(client, n)) for n in range(8)]
        try:
            for one in asyncio.as_completed(tasks, timeout=0.045):
                print("got", await one)
        except TimeoutError:
            print("timeout", [one.done() for one in tasks])
        for one in tasks:
            one.cancel()
        print(len(await asyncio.gather(*tasks, return_exceptions=True)))


def get(n):
    answer = requests.get(f"{URL}/wait", params={"n": n, "ms": n * 9 % 60}, timeout=30)
    return answer.json()["n"]


asyncio.run(main())
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    jobs = {pool.submit(get, n): n for n in range(8)}
    try:
        for job in concurrent.futures.as_completed(jobs, timeout=0.06):
            print("job", jobs[job], job.result())
    except concurrent.futures.TimeoutError as error:
        print("late", error)
    done, left = concurrent.futures.wait(jobs, timeout=0.01)
    print(len(done), len(left))
