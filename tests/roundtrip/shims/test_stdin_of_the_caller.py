"""A run replays with any stdin of the replay's caller, whatever stdin the recorded run had."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

PLAYHEAD = (sys.executable, "-m", "playhead")

KINDS = ("pipe", "terminal", "null", "closed", "file")

SHELL = """#!/bin/sh
git --version
git hash-object --stdin </dev/null
git hash-object -t blob /dev/null & wait
sh -c 'git --version; git hash-object --stdin </dev/null'
"""

PYTHON = """
import asyncio, subprocess

words = ["git", "--version"]
print(subprocess.run(words, capture_output=True, text=True).stdout)
print(subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout)
subprocess.run(["sh", "-c", "git --version"], check=True)

async def main():
    child = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    print((await child.communicate())[0])
    child = await asyncio.create_subprocess_shell("git --version; echo $?")
    print(await child.wait())

asyncio.run(main())
"""

PROGRAMS = {"wrapper.sh": SHELL, "program.py": PYTHON}


def playhead(folder: Path, stdin: str, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`playhead VERB` with a stdin of this kind."""
    argv = [*PLAYHEAD, verb, "--store", str(folder / "store"), *words]
    env = {key: value for key, value in os.environ.items() if not key.startswith("PLAYHEAD_")}
    if stdin == "closed":
        argv = ["sh", "-c", 'exec "$@" <&-', "sh", *argv]
    ends: list[int] = []
    if stdin == "pipe":
        ends = list(os.pipe())
    elif stdin == "terminal":
        ends = [*reversed(pty.openpty())]
    elif stdin == "file":
        (folder / "input.txt").write_text("a line\n")
        ends = [os.open(folder / "input.txt", os.O_RDONLY)]
    try:
        return subprocess.run(
            argv,
            cwd=folder,
            env=env,
            stdin=ends[0] if ends else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        for fd in ends:
            os.close(fd)


@pytest.mark.parametrize(
    ("program", "then"),
    # A Python program names the kind of stdin itself: two recordings of it are enough.
    [*(("wrapper.sh", then) for then in KINDS), ("program.py", "pipe"), ("program.py", "closed")],
)
def test_a_run_replays_with_any_stdin_of_its_caller(tmp_path, program, then):
    path = tmp_path / program
    path.write_text(PROGRAMS[program])
    path.chmod(0o755)
    words = [str(path)] if path.suffix == ".sh" else [sys.executable, str(path)]
    recorded = playhead(tmp_path, then, "record", "--no-seal", "--", *words)
    assert recorded.returncode == 0, recorded.stderr
    told = {}
    for now in KINDS:
        report = tmp_path / f"{now}.json"
        replayed = playhead(tmp_path, now, "replay", "last", "--report", str(report))
        same = replayed.stdout == recorded.stdout
        verdict = json.loads(report.read_text())["verdict"] if report.exists() else "no report"
        told[now] = (verdict, same) if verdict == "identical" and same else replayed.stderr
    assert told == dict.fromkeys(KINDS, ("identical", True))
