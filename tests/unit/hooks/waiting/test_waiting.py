"""Every way of waiting costs nothing in a replay, and no timeout fires that should not: `checks.py`."""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import playhead

SRC = Path(playhead.__file__).parents[1]
PROGRAM = Path(__file__).with_name("checks.py")
CHECKS = [
    *re.findall(r"^@check\ndef (\w+)", PROGRAM.read_text(), re.MULTILINE),
    "what_was_there_is_put_back",
]


@functools.cache
def ran(python):
    """All checks in one process of that Python."""
    argv = [python, "-W", "error", str(PROGRAM), str(SRC)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("name", CHECKS)
def test_in_a_replay(guest_python, name):
    assert ran(guest_python)[name] == "ok"


LOOPS = {
    "trio": """
        async def main():
            began = trio.current_time()
            with trio.move_on_after(60) as scope:
                await trio.sleep(3600)
            await trio.to_thread.run_sync(time.sleep, 100)
            said = []
            async def tick(seconds):
                await trio.sleep(seconds)
                said.append(seconds)
            async with trio.open_nursery() as nursery:
                for seconds in (300, 100, 200):
                    nursery.start_soon(tick, seconds)
            print(scope.cancelled_caught, said, round(trio.current_time() - began))
        import trio
        trio.run(main)
    """,
    "anyio": """
        async def main():
            began = anyio.current_time()
            with anyio.move_on_after(60) as scope:
                await anyio.sleep(3600)
            await anyio.to_thread.run_sync(time.sleep, 100)
            said = []
            async def tick(seconds):
                await anyio.sleep(seconds)
                said.append(seconds)
            async with anyio.create_task_group() as group:
                for seconds in (300, 100, 200):
                    group.start_soon(tick, seconds)
            print(scope.cancelled_caught, said, round(anyio.current_time() - began))
        import anyio
        anyio.run(main)
    """,
    "uvloop": """
        async def main():
            loop = asyncio.get_running_loop()
            began, said = loop.time(), []
            try:
                await asyncio.wait_for(asyncio.sleep(3600), 60)
            except asyncio.TimeoutError:
                caught = True
            await asyncio.to_thread(time.sleep, 100)
            async def tick(seconds):
                await asyncio.sleep(seconds)
                said.append(seconds)
            await asyncio.gather(*map(tick, (300, 100, 200)))
            print(caught, said, round(loop.time() - began))
        import asyncio, uvloop
        uvloop.run(main())
    """,
}


@pytest.mark.parametrize("loop", LOOPS)
def test_other_loops_wait_as_asyncio_does(loop, tmp_path):
    program = tmp_path / "program.py"
    lines = [line[8:] for line in LOOPS[loop].splitlines()]
    begin = f"import sys, time; sys.path.insert(0, {str(PROGRAM.parent)!r})\nimport checks\n"
    program.write_text(begin + "checks.hooks()\n" + "\n".join(lines))
    argv = [sys.executable, str(program)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == "True [100, 200, 300] 460\n", ended.stderr
