"""`asyncio.to_thread` tools: one reads a file, one runs a process, one makes HTTP calls."""

import asyncio
import subprocess
import sys

import requests

URL = sys.argv[1]


def read_file(n):
    with open(__file__, encoding="utf-8") as source:
        lines = source.read().splitlines()
    print("file", n, len(lines))
    return f"file {n}"


def run_process(n):
    done = subprocess.run(
        ["sh", "-c", f"sleep 0.0{n}; echo {n}"], capture_output=True, text=True, check=True
    )
    print("process", n, done.stdout.strip())
    return f"process {n}"


def call_http(n):
    answer = requests.get(f"{URL}/wait", params={"n": n, "ms": 10 + n * 5}, timeout=10)
    print("http", n, answer.json()["n"])
    return f"http {n}"


async def main():
    tools = [read_file, run_process, call_http]
    jobs = [asyncio.to_thread(tool, n) for n in range(1, 4) for tool in tools]
    for done in asyncio.as_completed(jobs):
        print("finished", await done)


asyncio.run(main())
