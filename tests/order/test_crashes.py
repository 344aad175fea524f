"""Programs that crash replay identically; a changed message or a changed frame of the program is found."""

import json
import sys

import pytest
from tests.order.shapes import PROGRAMS, RECORDING_LIMIT_S, measure, run
from tests.order.world import serve

CRASHES = ("crash_in_tool", "crash_in_stream", "crash_interrupted", "exit_three")

PROGRAM = """
import asyncio
import sys
import httpx

async def look(client, n):
    answer = await client.get(f"{sys.argv[1]}/wait", params={"n": n, "ms": n})
    return check(answer.json()["n"])

def check(n):
    if n == "2":
        raise ValueError("no room for 2")
    return n

async def main():
    async with httpx.AsyncClient() as client:
        print(await asyncio.gather(*(look(client, n) for n in range(4))))

asyncio.run(main())
"""

CHANGES = {
    "message": ("no room for 2", "no seat for 2"),
    "type": ("raise ValueError", "raise KeyError"),
    "frame": ("return check(answer", "return (lambda n: check(n))(answer"),
}


@pytest.fixture(scope="module")
def site():
    with serve() as site:
        yield site


@pytest.mark.parametrize("name", CRASHES)
def test_a_crashing_agent_replays_identically(name, site):
    assert (PROGRAMS / f"{name}.py").exists()
    score = measure(name, site, recordings=1, replays=2)
    assert (score.identical, score.hangs, score.requests) == (2, 0, 0), score.failures


def _crash(folder, url):
    program = folder / "program.py"
    program.write_text(PROGRAM)
    words = (sys.executable, str(program), url)
    then = run(folder, "record", "--no-seal", "--", *words, limit_s=RECORDING_LIMIT_S)
    assert b"ValueError: no room for 2" in then.stderr
    return program, words


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_what_the_program_raises_is_found(what, site, tmp_path):
    program, words = _crash(tmp_path, site.url)
    program.write_text(PROGRAM.replace(*CHANGES[what]))
    report = tmp_path / "report.json"
    now = run(tmp_path, "replay", "last", "--report", str(report), "--", *words)
    found = json.loads(report.read_text())
    assert (now.returncode, found["verdict"]) == (3, "diverged")
    assert found["first_divergence"]["kind"] == "output"


def test_lines_that_have_moved_are_not_a_change(site, tmp_path):
    program, words = _crash(tmp_path, site.url)
    program.write_text("# a comment\n\n" + PROGRAM)
    now = run(tmp_path, "replay", "last", "--", *words)
    assert now.returncode == 0, now.stderr.decode()
