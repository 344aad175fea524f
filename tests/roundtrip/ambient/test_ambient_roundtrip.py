"""Real programs that live by clock and chance print the same bytes again, in no time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import warm_start

import playhead

PROGRAMS = Path(__file__).parent / "programs"
PLAYHEAD = [sys.executable, "-m", "playhead"]
SRC = str(Path(playhead.__file__).parents[1])


class Stage:
    """Records a program and replays it, in a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.report: dict = {}

    def record(self, *command: str, **env: str) -> subprocess.CompletedProcess:
        return self._run("record", "--no-seal", "--", *command, env=env)

    def replay(self, *options: str, **env: str) -> subprocess.CompletedProcess:
        report = self.folder / "report.json"
        ended = self._run("replay", "last", "--report", str(report), *options, env=env)
        self.report = json.loads(report.read_text()) if report.exists() else {}
        return ended

    def _run(self, verb: str, *words: str, env: dict[str, str]) -> subprocess.CompletedProcess:
        store = str(self.folder / "store")
        return warm_start.run(
            [*PLAYHEAD, verb, "--store", store, *words],
            cwd=self.folder,
            env={**os.environ, "TMPDIR": str(self.folder), **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def same(stage, *command, **env):
    """Record, replay; the two outputs, which must be equal."""
    then = stage.record(*command, **env)
    assert then.returncode == 0, then.stderr
    now = stage.replay(**env)
    assert now.returncode == 0, now.stderr
    assert now.stdout == then.stdout
    assert stage.report["verdict"] == "identical"
    return then.stdout


def test_clock_and_chance_are_the_same_again(stage, guest_python):
    said = same(stage, guest_python, str(PROGRAMS / "everything.py"))
    assert len(said.splitlines()) > 18


def test_numbers_that_come_in_pairs_stay_with_who_drew_them(stage, tmp_path):
    """`random.gauss` keeps every second number for its next caller, whoever that is."""
    program = tmp_path / "pairs.py"
    program.write_text(
        "import random, sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "sys.setswitchinterval(1e-6)\n"
        "random.random()\n"
        "def job(_): return [random.gauss(0, 1) for _ in range(400)]\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print(*pool.map(job, range(24)), sep='\\n')\n"
    )
    same(stage, sys.executable, str(program))


def test_a_second_replay_finds_the_files_of_the_first_and_is_the_same(stage):
    then = stage.record(sys.executable, str(PROGRAMS / "everything.py"))
    for _ in range(2):
        now = stage.replay()
        assert now.stdout == then.stdout, now.stderr


def test_waits_end_as_they_ended_and_cost_nothing(stage, guest_python):
    """On one Python the waits are long: even on a busy machine a replay starts and ends sooner than they would."""
    is_long = guest_python == sys.executable
    same(stage, guest_python, str(PROGRAMS / "waiting.py"), "4" if is_long else "1")
    took = stage.report["duration_s"]
    assert not is_long or took["replayed"] < took["recorded"]


def test_of_answers_in_flight_the_first_one_is_first_again(stage, guest_python):
    said = same(stage, guest_python, str(PROGRAMS / "racing.py"), PYTHONPATH=SRC)
    assert said.splitlines()[:5] == [
        "found by quick",
        "tick",
        "found by middling",
        "tick",
        "found by slow",
    ]
    assert said.splitlines()[-3:] == ["seen by quick", "seen by middling", "seen by slow"]
    assert said.count("too slow") == 1


def test_at_pace_a_replay_takes_as_long_as_the_run(stage, tmp_path):
    program = tmp_path / "naps.py"
    program.write_text("import time\ntime.sleep(0.5)\nprint(time.time())\n")
    then = stage.record(sys.executable, str(program))
    now = stage.replay("--pace")
    assert now.stdout == then.stdout
    assert stage.report["duration_s"]["replayed"] >= 0.5


def test_uuids_of_rust_and_numbers_of_numpy_are_the_same_again(stage, tmp_path):
    program = tmp_path / "libraries.py"
    program.write_text(
        "import numpy, uuid_utils\n"
        "from langchain_core.runnables import RunnableLambda\n"
        "from langchain_core.callbacks import BaseCallbackHandler\n"
        "class Says(BaseCallbackHandler):\n"
        "    def on_chain_start(self, *args, run_id, **more): print('run', run_id)\n"
        "print(uuid_utils.uuid4(), uuid_utils.uuid7())\n"
        "print(numpy.random.rand(3), numpy.random.default_rng().integers(10**9, size=3))\n"
        "chain = RunnableLambda(lambda x: x + 1) | RunnableLambda(lambda x: x * 2)\n"
        "print(chain.batch([1, 2, 3], {'callbacks': [Says()], 'max_concurrency': 1}))\n"
    )
    said = same(stage, sys.executable, str(program))
    assert said.count("run ") == 9


def test_a_loop_that_waits_by_looking_at_the_clock_ends_at_the_same_turn(stage, tmp_path):
    program = tmp_path / "spins.py"
    program.write_text(
        "import time\n"
        "turns, until = 0, time.time() + 0.3\n"
        "while time.time() < until: turns += 1\n"
        "print(turns)\n"
    )
    said = same(stage, sys.executable, str(program))
    assert int(said) > 10_000
    tape = sum(path.stat().st_size for path in tmp_path.glob("store/runs/*/tape-*.jsonl"))
    assert tape < 200_000


def test_code_that_reads_the_clock_where_it_did_not_then_goes_on_from_the_tape(stage, tmp_path):
    program = tmp_path / "agent.py"
    program.write_text("import time\ndef work(): print(time.time())\nwork()\n")
    then = stage.record(sys.executable, str(program))
    program.write_text(
        "import time\n\n\ndef before(): return time.time()\nearlier = before()\n"
        "def work(): print(time.time())\nwork()\n"
        "assert 0 <= float(open('then').read()) - earlier < 3600\n"
    )
    (tmp_path / "then").write_text(then.stdout)
    now = stage.replay()
    assert now.stdout == then.stdout, now.stderr


def test_what_reaches_past_every_hook_is_a_divergence(stage, tmp_path):
    program = tmp_path / "leaks.py"
    program.write_text(
        # Connections are recorded; datagrams are not.
        "import socket\n"
        "udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "print(udp.sendto(b'x', ('127.0.0.1', 9)))\n"
    )
    then = stage.record(sys.executable, str(program))
    assert then.stdout == "1\n"
    now = stage.replay()
    assert now.returncode == 3
    assert "The program made a call that no hook covers: send to 127.0.0.1:9" in now.stderr
    assert stage.report["divergences"][0]["kind"] == "leak"
    assert stage.report["divergences"][0]["at"].startswith("leaks.py:3")


def test_a_run_that_was_killed_in_its_sleep_ends_there_again(stage, tmp_path):
    program = tmp_path / "daemon.py"
    program.write_text(
        "import os, signal, subprocess, threading, time\n"
        "print(subprocess.run(['echo', 'awake'], capture_output=True, text=True).stdout, flush=True)\n"
        "if 'KILL' in os.environ:\n"
        "    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()\n"
        "while True: time.sleep(3600)\n"
    )
    then = stage.record(sys.executable, str(program), KILL="1")
    now = stage.replay()
    assert now.stdout == then.stdout == "awake\n\n"
    assert stage.report["exit_code"] == {"recorded": -9, "replayed": -9}
