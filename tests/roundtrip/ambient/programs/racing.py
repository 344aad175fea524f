"""Tools that run beside each other: what is said depends on which answer comes first."""
# ruff: noqa: TID251  it sleeps: that is what it is about

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import playhead

# Far enough apart that a busy machine does not change who comes first.
LATENCIES = {"slow": 1.0, "quick": 0.2, "middling": 0.6, "at once": 0.0}
RACERS = ("slow", "quick", "middling")


@playhead.tool
async def search(name: str) -> str:
    await asyncio.sleep(LATENCIES[name])
    return f"found by {name}"


@playhead.tool
def look(name: str) -> str:
    time.sleep(LATENCIES[name])
    return f"seen by {name}"


async def main():
    async def tick():
        while True:
            await asyncio.sleep(0.4)
            print("tick")

    await search("at once")  # what only the first call of a process costs is paid before the race
    ticker = asyncio.ensure_future(tick())
    for answer in asyncio.as_completed([search(name) for name in RACERS]):
        print(await answer)
    done, rest = await asyncio.wait(
        [asyncio.ensure_future(search(name)) for name in RACERS],
        return_when=asyncio.FIRST_COMPLETED,
    )
    print(sorted(one.result() for one in done))
    await asyncio.gather(*rest)
    for timeout in (0.05, 5):
        try:
            print(await asyncio.wait_for(search("quick"), timeout))
        except asyncio.TimeoutError:
            print("too slow")
    ticker.cancel()


asyncio.run(main())
with ThreadPoolExecutor(3) as pool:
    futures = [pool.submit(look, name) for name in RACERS]
    for future in as_completed(futures):
        print(future.result())
