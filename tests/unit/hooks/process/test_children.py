"""What a child is started with, whoever starts it."""

import asyncio
import os
import subprocess
import sys

import pytest
import uvloop

from playhead.hooks.process import children

SHOW = "import os, sys; print(os.environ.get('MARK'), sys.argv[1:])"


@pytest.fixture
def carried():
    """A carrier that marks what it is asked to carry."""
    asked = []

    def carrier(argv, env, ref):
        asked.append((argv, env, ref))
        return [*argv, "carried"], {**(os.environ if env is None else env), "MARK": ref}

    children.set_carrier(carrier)
    yield asked
    children.set_carrier(None)


def told(output, stage):
    """The mark is the name of the call; a child's segment hangs below it."""
    mark, _, argv = output.decode().strip().partition(" ")
    calls = [one for one in stage.recorded.events if one.kind == "call"]
    assert mark in [one.ref for one in calls]
    return argv


def test_an_environment_of_the_callers_own_is_carried_too(stage, carried):
    def scene(work):
        return subprocess.run(
            [sys.executable, "-c", SHOW], env={"A": "b"}, stdout=-1, check=False
        ).stdout

    output = stage.record(scene)
    assert told(output, stage) == "['carried']"
    assert carried[0][1] == {"A": "b"}
    assert stage.recorded.call["request"]["env"] == {"A": "b"}
    assert "carried" not in stage.recorded.call["request"]["argv"]


def test_popen_shows_the_arguments_that_it_was_given(stage, carried):
    def scene(work):
        return subprocess.run([sys.executable, "-c", SHOW], stdout=-1, check=False).args

    assert stage.record(scene) == [sys.executable, "-c", SHOW]


STARTS = {
    "shell": lambda: subprocess.check_output("echo $MARK", shell=True),
    "executable": lambda: subprocess.check_output(
        ["python", "-c", SHOW], executable=sys.executable
    ),
    "getoutput": lambda: subprocess.getoutput("echo $MARK").encode(),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_every_form_of_popen_carries(stage, carried, start):
    told(stage.record(lambda work: start()), stage)


def test_asyncio_and_uvloop_carry(stage, carried):
    async def scene():
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", SHOW, stdout=-1)
        first, _ = await process.communicate()
        process = await asyncio.create_subprocess_shell("echo $MARK", stdout=-1)
        second, _ = await process.communicate()
        return first, second

    def on_uvloop(work):
        loop = uvloop.new_event_loop()
        try:
            return loop.run_until_complete(scene())
        finally:
            loop.close()

    for play in (lambda work: asyncio.run(scene()), on_uvloop):
        first, second = stage.record(play)
        assert told(first, stage) == "['carried']"
        told(second, stage)


def test_spawns_carry(stage, carried):
    def scene(work):
        out = work / "out"
        open_out = (os.POSIX_SPAWN_OPEN, 1, str(out), os.O_WRONLY | os.O_CREAT, 0o600)
        pid = os.posix_spawn(sys.executable, ["python", "-c", SHOW], {}, file_actions=[open_out])
        os.waitpid(pid, 0)
        first = out.read_bytes()
        os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", f"echo $MARK > {out}"])
        return first, out.read_bytes()

    first, second = stage.record(scene)
    assert told(first, stage) == "['carried']"
    told(second, stage)


def test_what_is_lent_to_system_is_given_back(stage, carried, monkeypatch):
    monkeypatch.delenv("MARK", raising=False)

    def scene(work):
        os.system(f"echo $MARK > {work}/out")
        return (work / "out").read_bytes(), os.environ.get("MARK")

    lent, shown = stage.record(scene)
    told(lent, stage)
    assert shown is None
    assert subprocess.check_output("echo $MARK", shell=True) == b"\n"


def test_what_stands_in_the_c_environment_is_put_back_there(stage, carried, monkeypatch):
    monkeypatch.delenv("MARK", raising=False)
    children.set_standing(lambda: {"MARK": "standing"})
    try:
        with children.LentVariables({"MARK": "lent", "OTHER": "x"}):
            assert subprocess.getoutput("echo $MARK$OTHER") == "lent"
        assert subprocess.getoutput("echo $MARK") == "standing"
    finally:
        children.set_standing(dict)
        os.unsetenv("MARK")


def test_a_carrier_that_fails_leaves_the_child_alone(stage):
    def carrier(argv, env, ref):
        raise RuntimeError("no")

    children.set_carrier(carrier)
    try:
        assert stage.record(lambda work: subprocess.check_output(["echo", "x"])) == b"x\n"
    finally:
        children.set_carrier(None)


def test_a_child_that_is_played_needs_no_carrying(stage, carried):
    stage.record(lambda work: subprocess.check_output(["echo", "x"]))
    carried.clear()
    assert stage.replay(lambda work: subprocess.check_output(["echo", "x"])).startswith(b"x")
    assert carried == []
