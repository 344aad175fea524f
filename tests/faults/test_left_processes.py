"""Processes that a recording or a replay started: none is left behind silently."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from playhead.launch.sidecar.process_tree import left_of

pytestmark = pytest.mark.faults

# Ends at once while the file exists; otherwise the shell and two children of it use a core each.
SPINNER = """
(while [ ! -e "$1" ]; do :; done) &
setsid sh -c 'while [ ! -e "$1" ]; do :; done' sh "$1" &
while [ ! -e "$1" ]; do :; done
wait
echo done
"""
DAEMON = """
(trap '' HUP; while [ ! -e "$1" ]; do sleep 0.05; done) >/dev/null 2>&1 </dev/null &
echo started
"""


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"
        self.go = folder / "go"
        self.work = folder / "work"
        self.work.mkdir()
        self.env = {**os.environ, "PLAYHEAD_HOME": str(self.store)}

    def start(self, *words: str) -> subprocess.Popen:
        # Files and not pipes: a process that is left behind would keep a pipe open.
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            return subprocess.Popen(
                [sys.executable, "-m", "playhead", *words],
                cwd=self.work,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def ended(self, *words: str) -> str:
        """What it said on stderr."""
        self.start(*words).wait(timeout=120)
        return (self.folder / "err").read_text()

    def record(self, program: str) -> str:
        (self.work / "agent.sh").write_text(program)
        return self.ended("record", "--", "sh", "agent.sh", str(self.go))

    def runs(self) -> set[Path]:
        return set((self.store / "runs").iterdir())


def until(holds, seconds=60.0):
    """Look again and again. AssertionError: it never was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
    raise AssertionError("it never happened")


def test_nothing_of_a_replay_is_left_when_its_launcher_is_killed(desk):
    desk.go.touch()
    desk.record(SPINNER)
    (recorded,) = desk.runs()
    desk.go.unlink()
    launcher = desk.start("replay", "last")
    try:
        (run,) = until(lambda: desk.runs() - {recorded})
        until(lambda: len(left_of(str(run))) >= 3)
        os.kill(launcher.pid, signal.SIGKILL)
        until(lambda: not left_of(str(run)), 20)
    finally:
        desk.go.touch()
        launcher.kill()
        launcher.wait(timeout=30)


def test_a_replay_ends_the_processes_that_its_command_left_behind(desk):
    desk.go.touch()
    desk.record(DAEMON)
    (recorded,) = desk.runs()
    desk.go.unlink()
    err = desk.ended("replay", "last")
    (run,) = desk.runs() - {recorded}
    try:
        assert not left_of(str(run))
        assert "ended 1 process (" in err or "ended 2 processes (" in err, err
    finally:
        desk.go.touch()


def test_a_recording_names_the_processes_that_its_command_left_running(desk):
    err = desk.record(DAEMON)
    (run,) = desk.runs()
    try:
        left = left_of(str(run))
        named = json.loads((run / "manifest.json").read_text())["left_running"]
        assert {one.pid for one in left} & {one["pid"] for one in named}
        assert "the command left" in err
    finally:
        desk.go.touch()
