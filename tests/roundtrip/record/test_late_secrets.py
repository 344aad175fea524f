"""Secrets that a program learns while it runs, and then prints."""

import os
import subprocess
import sys

import pytest

SECRET = "tiger-lily-91-umbrella-quartz"
PROGRAM = """
import os, subprocess, sys
os.environ["DB_PASSWORD"] = os.environ.pop("GIVEN")
print("one", os.environ["DB_PASSWORD"], flush=True)
print("two", os.environ["DB_PASSWORD"], file=sys.stderr, flush=True)
subprocess.run(["sh", "-c", 'echo three "$DB_PASSWORD"'])
sys.stdout.flush()
"""


@pytest.mark.parametrize("how", ["a pipe", "a file"])
def test_a_secret_that_is_set_later_is_on_no_stream_of_the_tape(tmp_path, how):
    work, store = tmp_path / "work", tmp_path / "store"
    work.mkdir()
    (work / "agent.py").write_text(PROGRAM)
    env = {**os.environ, "PLAYHEAD_HOME": str(store), "GIVEN": SECRET[::-1]}
    (work / "agent.py").write_text(PROGRAM.replace('pop("GIVEN")', 'pop("GIVEN")[::-1]'))
    argv = [sys.executable, "-m", "playhead", "record", "--", sys.executable, "agent.py"]
    with (tmp_path / "out").open("wb") as out:
        to = subprocess.PIPE if how == "a pipe" else out
        done = subprocess.run(argv, cwd=work, env=env, stdout=to, stderr=to, check=True)
        said = done.stdout + done.stderr if how == "a pipe" else (tmp_path / "out").read_bytes()
    assert said.count(SECRET.encode()) == 3
    for path in store.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    tape = b"".join(path.read_bytes() for path in store.rglob("tape-*"))
    assert b"redacted" in tape
    assert not list(store.rglob("late.secrets"))
