"""What a child is started with so that it joins the run."""

import os
import shutil
import sys

import pytest

from playhead.launch.guest.children_env import (
    Carriage,
    current_environment,
    equip,
    version_of,
)
from playhead.launch.guest.variables import SITE, Prepared, Ticket, read, write
from playhead.launch.proxy.routes import Detour
from playhead.recording.lanes import Lane, current

TICKET = Ticket(run="/store/runs/r", parent="1:0", seed="7")


@pytest.fixture(autouse=True)
def lane():
    token = current.set(Lane("main"))
    yield
    current.reset(token)


def test_any_program_gets_the_variables_for_the_pythons_that_it_may_start():
    argv, env = equip(["git", "status"], {"A": "1"}, TICKET)
    assert argv == ["git", "status"]
    assert env["PYTHONPATH"] == SITE
    assert env["A"] == "1"


def test_the_command_of_a_resumed_session_is_not_inside_a_call():
    env = write({}, TICKET._replace(parent="9:52"))
    assert not read(env).inner
    assert read({**env, "PLAYHEAD_PARENT": "9:53"}).inner, "a shim has started it"
    assert read(write(env, TICKET._replace(parent="9:52", inner=True))).inner


def test_the_children_of_one_environment_get_what_is_written_for_each():
    ways = {"OPENAI_BASE_URL": Detour(through="http://127.0.0.1:5/v1", had=None, token="t")}
    ticket = TICKET._replace(inner=True, detours=ways, shims="/shims:/bin/sh")
    given = {"PATH": "/bin", "SHELL": "/bin/sh", "A": "ä"}
    prepared = Prepared(given, ticket)
    for call, lane, rerun in (("7:1", "main/p1", False), ("7:12", "main/w1", True)):
        made = prepared.of(call, lane, rerun=rerun)
        assert made == write(given, ticket._replace(parent=call, lane=lane, rerun=rerun))
        assert {os.fsdecode(key): os.fsdecode(one) for key, one in made.encoded.items()} == made


def test_an_isolated_python_is_opened_and_its_variables_are_kept_for_it():
    given = {"PYTHONPATH": "/one", "PYTHONHOME": "/bad", "A": "1"}
    argv, env = equip([sys.executable, "-I", "x.py"], given, TICKET)
    assert argv == [sys.executable, "-Ps", "x.py"]
    assert "PYTHONHOME" not in env
    assert env["PYTHONPATH"] == SITE
    restore = read(env).restore
    assert restore == {"PYTHONPATH": "/one", "PYTHONHOME": "/bad", "PYTHONHASHSEED": None}


def test_a_python_of_unknown_version_is_not_opened_by_words_that_it_may_not_know(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\n")
    argv, _ = equip([str(python), "-I", "x.py"], {}, TICKET)
    assert argv == [str(python), "-I", "x.py"]


def test_each_child_is_a_lane_of_its_own_in_order():
    carriage = Carriage("/store/runs/r")
    lanes = [read(carriage.carry(["x"], {}, "1:5")[1]).lane for _ in range(3)]
    assert lanes == ["main/p1", "main/p2", "main/p3"]


def test_without_an_environment_the_programs_own_is_carried(monkeypatch):
    monkeypatch.setenv("OF_THE_PROGRAM", "1")
    _, env = Carriage("/store/runs/r").carry(["x"], None, "1:5")
    assert env["OF_THE_PROGRAM"] == "1"
    assert read(env).parent == "1:5"


def test_a_child_with_a_run_of_its_own_is_left_alone():
    given = {"PLAYHEAD_RUN": "/store/runs/other"}
    assert Carriage("/store/runs/r").carry(["x"], given, "1:5") == (["x"], None)


def test_this_very_interpreter_is_known_by_its_file():
    assert version_of(sys.executable, {}) == sys.version_info[:2]


def test_an_interpreter_is_known_by_what_its_link_leads_to(tmp_path):
    real = tmp_path / "python3.12"
    real.write_text("")
    real.chmod(0o755)
    (tmp_path / "python").symlink_to(real)
    assert version_of(str(tmp_path / "python"), {}) == (3, 12)
    assert version_of("python", {"PATH": str(tmp_path)}) == (3, 12)


@pytest.mark.parametrize("key", ["version", "version_info"])
def test_an_interpreter_that_was_copied_is_known_by_its_environment(tmp_path, key):
    (tmp_path / "bin").mkdir()
    shutil.copy("/bin/sh", tmp_path / "bin" / "python")
    (tmp_path / "pyvenv.cfg").write_text(f"home = /x\n{key} = 3.13.1\n")
    assert version_of(str(tmp_path / "bin" / "python"), {}) == (3, 13)


def test_an_interpreter_that_is_not_there_has_no_version(tmp_path):
    assert version_of("python", {"PATH": str(tmp_path)}) is None
    assert version_of(os.fspath(tmp_path / "python"), {}) is None


def test_the_environment_is_that_of_this_moment(monkeypatch):
    monkeypatch.setenv("PLAYHEAD_TEST_ONE", "1")
    before = current_environment()
    assert before == dict(os.environ)
    assert current_environment() is before
    monkeypatch.setenv("PLAYHEAD_TEST_ONE", "2")
    monkeypatch.setenv("PLAYHEAD_TEST_BYTES", os.fsdecode(b"\xff\xfe"))
    assert current_environment() == dict(os.environ)
    monkeypatch.delenv("PLAYHEAD_TEST_ONE")
    assert "PLAYHEAD_TEST_ONE" not in current_environment()
    assert before["PLAYHEAD_TEST_ONE"] == "1"


def test_a_program_may_replace_the_environment(monkeypatch):
    monkeypatch.setattr(os, "environ", {"ONLY": "this"})
    assert current_environment() == {"ONLY": "this"}
