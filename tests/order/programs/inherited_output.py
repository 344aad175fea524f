"""Children that write to the program's own streams: waited for, at once, from threads and from a loop."""

import asyncio
import os
import subprocess
import sys
import threading


def run(script):
    subprocess.run(["sh", "-c", script], check=True)


child = subprocess.Popen(["sh", "-c", "echo one; sleep 0.02; echo two >&2; echo three"])
print("started", flush=True)
print("ended", child.wait(), flush=True)
scripts = ("for n in 1 2 3; do echo $n; sleep 0.02; done", "sleep 0.03; echo b", "echo c >&2")
threads = [threading.Thread(target=run, args=(one,)) for one in scripts]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()


async def main():
    made = [
        await asyncio.create_subprocess_exec("sh", "-c", f"sleep 0.0{3 - n}; echo child {n}")
        for n in range(3)
    ]
    print(await asyncio.gather(*(one.wait() for one in made)), flush=True)


asyncio.run(main())
print(os.system("echo last; exit 3") >> 8, file=sys.stderr)
