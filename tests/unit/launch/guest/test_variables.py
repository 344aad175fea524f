"""The variables by which a run reaches its processes, and how a program does not see them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.launch.guest import variables
from playhead.launch.guest.variables import (
    ALL,
    DETOURS,
    ROOT,
    SHIMS,
    SITE,
    STDIN,
    Ticket,
    read,
    standing,
    write,
)
from playhead.launch.proxy.routes import Detour

SOURCE = Path(__file__).parents[4] / "src"
TICKET = Ticket(run="/store/runs/r", parent="1:0", lane="main/2", terminals=(5, 6), seed="77")
THROUGH = {"ANTHROPIC_BASE_URL": Detour("http://127.0.0.1:4001/a", "https://models.example/a")}


def test_what_is_written_is_what_is_read():
    told = read(write({"A": "1"}, TICKET))
    assert told == TICKET._replace(restore={"PYTHONHASHSEED": None})


def test_a_process_of_no_run_has_no_ticket():
    assert read({"PATH": "/bin"}) is None


@pytest.mark.parametrize("path", ["/one", "/one:/two", ":/one", "/one:"])
def test_our_folder_comes_first_and_the_users_path_follows_as_it_was(path):
    assert write({"PYTHONPATH": path}, TICKET)["PYTHONPATH"] == f"{SITE}:{path}"


@pytest.mark.parametrize("env", [{}, {"PYTHONPATH": ""}])
def test_without_a_path_of_the_users_ours_stands_alone(env):
    assert write(env, TICKET)["PYTHONPATH"] == SITE


def test_written_twice_is_written_once():
    once = write({"PYTHONPATH": "/one"}, TICKET)
    assert write(once, TICKET)["PYTHONPATH"] == once["PYTHONPATH"]


def test_the_users_own_seed_is_kept():
    written = write({"PYTHONHASHSEED": "5"}, TICKET)
    assert written["PYTHONHASHSEED"] == "5"
    assert read(written).seed is None


def test_an_earlier_ticket_is_replaced_whole():
    written = write(write({}, TICKET), Ticket(run="/other", parent="2:0"))
    assert read(written) == Ticket(run="/other", parent="2:0", restore={})


def test_what_stands_is_what_the_program_does_not_see():
    shown = {"PYTHONPATH": "/one", "A": "1"}
    assert set(standing(shown, TICKET)) == {*ALL, "PYTHONPATH", "PYTHONHASHSEED"} - {
        DETOURS,
        ROOT,  # only for a command whose own event is not the first of its segment
        SHIMS,
        STDIN,
    }


def test_a_model_is_asked_by_the_proxy_and_the_program_is_told_its_own_address():
    env = {"ANTHROPIC_BASE_URL": "https://models.example/a"}
    written = write(env, TICKET._replace(detours=THROUGH))
    assert written["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:4001/a"
    assert read(written).detours == THROUGH


def test_a_child_of_a_call_takes_the_call_along_on_its_way():
    inner = TICKET._replace(detours=THROUGH, parent="7:12", inner=True)
    env = {"ANTHROPIC_BASE_URL": "https://models.example/a"}
    assert write(env, inner)["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:4001/~7:12/a"


# Without `site`, which would find our sitecustomize and hide everything before we look.
HIDE = """
import json, os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from playhead.launch.guest import variables
ticket = variables.read(os.environ)
variables.hide(os.environ, ticket)
inherited = subprocess.check_output(["env", "-0"]).decode().split("\\0")
print(json.dumps([dict(os.environ), [line for line in inherited if line]]))
"""


def hidden(env):
    argv = [sys.executable, "-S", "-c", HIDE, str(SOURCE)]
    return json.loads(subprocess.check_output(argv, env=env))


@pytest.mark.parametrize("env", [{}, {"PYTHONPATH": "/one"}, {"PYTHONHASHSEED": "5"}])
def test_a_program_sees_its_own_environment_and_children_inherit_ours(env):
    shown, inherited = hidden(write({"PATH": os.environ["PATH"], **env}, TICKET))
    assert {name: shown.get(name) for name in env} == env
    assert not {name for name in shown if name.startswith("PLAYHEAD_")}
    assert ("PYTHONHASHSEED" in shown) is ("PYTHONHASHSEED" in env)
    path = next(line for line in inherited if line.startswith("PYTHONPATH="))
    assert path.startswith(f"PYTHONPATH={SITE}")
    assert "PLAYHEAD_RUN=/store/runs/r" in inherited


def test_variables_that_were_taken_away_on_the_way_in_are_put_back():
    restored = TICKET._replace(restore={"PYTHONPATH": "/one", "PYTHONOPTIMIZE": "1"})
    shown, inherited = hidden(write({"PATH": os.environ["PATH"]}, restored))
    assert shown["PYTHONPATH"] == "/one"
    assert shown["PYTHONOPTIMIZE"] == "1"
    assert f"PYTHONPATH={SITE}:/one" in inherited


def test_an_environment_that_is_no_cpythons_is_left_as_it_is():
    env = write({"A": "1"}, TICKET)
    before = dict(env)
    variables.hide(env, TICKET)
    assert env == before
