"""Whatever starts a Python, the Python is recorded: scripts, modules, tools, shells, uv."""

import shutil
import sys
import zipapp
from pathlib import Path

import pytest

PROGRAM = "import subprocess, sys\nsubprocess.run(['true'])\nprint('done', *sys.argv[1:])\n"
UV = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")


def script(record):
    return [sys.executable, record.script("agent.py", PROGRAM)]


def module(record):
    record.script("agent_module.py", PROGRAM)
    return [sys.executable, "-m", "agent_module"]


def one_liner(record):
    return [sys.executable, "-c", PROGRAM]


def from_stdin(record):
    return ["sh", "-c", f"{sys.executable} - < {record.script('agent.py', PROGRAM)}"]


def console_script(record):
    return [record.script("agent-tool", f"#!{sys.executable}\n{PROGRAM}", 0o755)]


def shell_script(record):
    agent = record.script("agent.py", PROGRAM)
    return [record.script("run.sh", f"#!/bin/sh\ncd /\n{sys.executable} {agent}\n", 0o755)]


def shell_script_without_hashbang(record):
    agent = record.script("agent.py", PROGRAM)
    return [record.script("run.sh", f"{sys.executable} {agent}\n", 0o755)]


def archive(record):
    folder = record.folder / "packed"
    folder.mkdir()
    (folder / "__main__.py").write_text(PROGRAM)
    zipapp.create_archive(folder, record.folder / "agent.pyz")
    return [sys.executable, str(record.folder / "agent.pyz")]


def uv_run(record):
    agent = record.script("agent.py", PROGRAM)
    return [UV, "run", "--offline", "--no-project", "--python", sys.executable, agent]


def env_tool(record):
    return ["env", "SOME=1", sys.executable, record.script("agent.py", PROGRAM)]


FORMS = [
    *(script, module, one_liner, from_stdin, console_script, shell_script),
    *(shell_script_without_hashbang, archive, env_tool, uv_run),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_its_calls_are_on_the_tape_and_it_prints_what_it_prints(record, form):
    if form is uv_run and UV is None:
        pytest.skip("needs uv")
    take = record(*form(record))
    assert take.ended.returncode == 0, take.ended.stderr
    assert take.ended.stdout == "done\n"
    assert take.printed() == "done\n"
    assert [call.data["request"]["argv"] for call in take.calls()] == [["true"]]
    assert take.status == "ok"
    assert take.damages == []
    assert take.of("hole") == []


def test_the_first_python_hangs_under_the_run_itself(record):
    take = record(*script(record))
    (process,) = take.processes
    assert process.parent == take.root
    assert process.lane == "main"
    assert process.data["pid"] in {call.pid for call in take.calls()}


def test_arguments_reach_the_program_as_they_were(record):
    words = ["--name", "-x", "--", "a b", "$HOME", "", "ü"]
    take = record(*script(record), *words)
    assert take.ended.stdout == " ".join(["done", *words]) + "\n"
    assert take.manifest.command[2:] == words


# Importing all plugins that are installed takes longer than the rest of the test.
BARE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def test_pytest_is_recorded_with_what_its_tests_do(record):
    record.script("test_it.py", "import subprocess\ndef test_it(): subprocess.run(['true'])\n")
    take = record("pytest", "-q", "-p", "no:cacheprovider", "test_it.py", env=BARE)
    assert "1 passed" in take.ended.stdout
    assert ["true"] in [call.data["request"]["argv"] for call in take.calls()]


def test_a_failing_test_of_pytest_is_no_error_that_ended_the_program(record):
    record.script("test_it.py", "def test_it(): assert 0\n")
    take = record("pytest", "-q", "-p", "no:cacheprovider", "test_it.py", env=BARE)
    assert take.ended.returncode == 1
    assert [end.data.get("error") for end in take.of("segment.end")] == [None, None, None]


def test_a_command_that_is_no_python_is_recorded_by_what_it_prints(record):
    take = record("echo", "hello")
    assert take.ended.stdout == take.printed() == "hello\n"
    assert take.processes == []
    assert take.of("hole") == []


def test_the_program_may_speak_to_its_own_run(record):
    program = """
import playhead
run = playhead.current()
run.emit("plan:made", {"steps": 3})
with playhead.record(name="inner") as inner:
    inner.emit("plan:done")
    print(inner.id == run.id)
"""
    take = record(sys.executable, "-c", program)
    assert take.ended.stdout == "True\n"
    assert [one.data for one in take.of("plan:made")] == [{"steps": 3}]
    assert len(take.of("plan:done")) == 1
    assert len(take.of("run.end")) == 1


def test_a_recording_inside_a_recording_has_a_tape_of_its_own(record):
    inner = record.argv(sys.executable, "-c", "import subprocess; subprocess.run(['true'])")
    home = record.folder / "other"
    take = record("env", f"PLAYHEAD_HOME={home}", *inner)
    assert take.ended.returncode == 0, take.ended.stderr
    (other,) = (home / "runs").iterdir()
    assert take.run.name != other.name
    assert [call.data["request"]["argv"][-1] for call in take.calls()] != ["true"]
