"""Six asyncio subprocesses; lines are printed as they come."""

import asyncio


async def run(n):
    script = f"for i in 1 2 3 4; do echo {n}.$i; sleep 0.0{n}; done"
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", script, stdout=asyncio.subprocess.PIPE
    )
    async for line in process.stdout:
        print(line.decode().strip())
    print(n, "exit", await process.wait())


async def main():
    await asyncio.gather(*(run(n) for n in range(1, 7)))


asyncio.run(main())
