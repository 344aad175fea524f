"""Tools are recorded under every Python that an agent may run, with the standard library alone."""

import json
import os
import subprocess
from pathlib import Path

import playhead

PROGRAM = """
import asyncio, json, sys
import playhead

class Desk:
    @playhead.tool
    def greet(self, who): return f"hello {who}"

@playhead.tool
def count(upto):
    yield from range(upto)

@playhead.tool
async def fetch(url):
    await asyncio.sleep(0)
    return (url, {1})

@playhead.tool
async def tick(upto):
    for n in range(upto): yield n

@playhead.tool(effect="write")
def fail(): raise ValueError("no")

async def main():
    gave = [await fetch("u"), [n async for n in tick(2)]]
    try: await asyncio.wait_for(hang(), 0.01)
    except asyncio.TimeoutError: gave.append("gave up")
    return gave

@playhead.tool
async def hang(): await asyncio.Event().wait()

with playhead.record(store=sys.argv[1]) as run:
    gave = [Desk().greet("ada"), list(count(2)), *asyncio.run(main())]
    try: fail()
    except ValueError as error: gave.append(str(error))
print(repr(gave))
print(run.path)
"""


def test_tools_of_every_kind_are_recorded_on_every_python(guest_python, tmp_path):
    source = str(Path(playhead.__file__).parents[1])
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [guest_python, "-S", "-W", "error", "-c", PROGRAM, str(tmp_path)]
    ended = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    gave, path = ended.stdout.splitlines()
    assert gave == "['hello ada', [0, 1], ('u', {1}), [0, 1], 'gave up', 'no']"
    (segment,) = Path(path).glob("tape-*.jsonl")
    events = [json.loads(line) for line in segment.read_text().splitlines()]
    calls = {one["seq"]: one["data"]["name"] for one in events if one["kind"] == "call"}
    ended = {
        calls[one["data"]["call"]]: one["data"]["how"] for one in events if one["kind"] == "outcome"
    }
    assert ended == {
        "greet": "returned",
        "count": "returned",
        "fetch": "returned",
        "tick": "returned",
        "hang": "left",
        "fail": "raised",
    }
