import os
import subprocess

import pytest

from playhead.hooks.process.request import (
    call_of,
    env_changes,
    kind_of,
    name_of,
    one_line,
    script_of,
)

NAMES = {
    "git": ["git"],
    "git status": ["/usr/bin/git", "-C", "status", "status"],
    "docker compose": ["docker", "compose", "up"],
    "ls": ["ls", "-la"],
    "echo": ["echo", "hello"],
    "python -m": ["python", "-m"],
    "python3.11 -m http.server": ["/usr/bin/python3.11", "-m", "http.server"],
    "python agent.py": ["python", "/srv/agent.py", "--fast"],
    "python -c": ["python", "-c", "print(1)"],
    "node server.js": ["node", "server.js"],
    "?": [],
}


@pytest.mark.parametrize(("name", "argv"), NAMES.items(), ids=NAMES)
def test_a_process_is_called_what_people_call_it(name, argv):
    assert name_of(argv) == name


SCRIPTS = {
    "git push": "cd /tmp && FOO=1 BAR=2 git push origin main",
    "pytest": "pytest -q | tail -3",
    "npm test": "set -e; npm test",
    "cat": "cat > notes.md <<'EOF'\n# git push\nEOF\n",
    "make all": "(make all)",
}


@pytest.mark.parametrize(("name", "script"), SCRIPTS.items(), ids=SCRIPTS)
def test_a_script_is_called_after_its_first_command_that_does_something(name, script):
    assert name_of([], script) == name


@pytest.mark.parametrize(
    ("argv", "script"),
    [
        (["bash", "-lc", "echo hi"], "echo hi"),
        (["bash", "-c", "-l", "echo hi"], "echo hi"),
        (["/bin/sh", "-e", "-c", "echo hi", "arg"], "echo hi"),
        (["bash", "script.sh", "-c"], None),
        (["bash", "-c"], None),
        (["git", "-c", "x=y", "status"], None),
        ([], None),
    ],
)
def test_what_a_shell_was_given_to_run_is_found(argv, script):
    assert script_of(argv) == script


def test_the_command_is_one_line_as_it_was_written():
    script = "\n  python3 -m pytest -q 2>&1 | tail -5\necho done\n"
    assert one_line(script) == "python3 -m pytest -q 2>&1 | tail -5"
    assert call_of(via="test", argv=["bash", "-lc", script]).facts["command"] == one_line(script)
    assert call_of(via="test", argv=["echo", "two words"]).facts["command"] == "echo 'two words'"


def test_only_what_differs_from_our_own_environment_is_asked_for(monkeypatch):
    monkeypatch.setenv("SAME", "1")
    monkeypatch.setenv("GONE", "1")
    env = {name: value for name, value in os.environ.items() if name != "GONE"}
    changed, unset = env_changes({**env, "NEW": "x", "PLAYHEAD_RUN": "ours"})
    assert (changed, unset) == ({"NEW": "x"}, ["GONE"])
    assert env_changes(None) == ({}, [])
    assert env_changes({b"SAME": b"2"})[0] == {"SAME": "2"}


def test_an_environment_from_nothing_does_not_name_all_that_it_lacks(monkeypatch):
    for number in range(20):
        monkeypatch.setenv(f"VARIABLE_{number}", "1")
    call = call_of(via="test", argv=["true"], env={"A": "b"})
    assert call.request["env"] == {"A": "b"}
    assert call.facts["unset"] >= 20


def test_kinds_of_streams_are_the_same_in_every_run(tmp_path):
    read, write = os.pipe()
    with (tmp_path / "log").open("wb") as log, open(os.devnull, "wb") as null:
        kinds = [
            kind_of(given)
            for given in (
                None,
                subprocess.PIPE,
                subprocess.STDOUT,
                subprocess.DEVNULL,
                1,
                read,
                log,
                null,
            )
        ]
    os.close(read)
    os.close(write)
    assert kinds == ["inherited", "pipe", "stdout", "null", "inherited", "pipe", "file", "device"]
    assert kind_of(log) == kind_of("nonsense") == "closed"
