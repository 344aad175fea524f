"""Which programs get a shim, and the environment in which they are found."""

import os

import pytest

from playhead.launch.guest.variables import SHIMS, put_first, take_out
from playhead.launch.shims.covering import covered
from playhead.launch.shims.program_names import DEFAULT, Wanted, of_facts, wanted


@pytest.fixture
def env(tmp_path) -> dict[str, str]:
    """A PATH with two programs on it, one of them a Python's."""
    for name, text in (("agent", "#!/usr/bin/env python3\n"), ("git", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return {"PATH": str(tmp_path), "SHELL": "/bin/zsh"}


def test_a_command_that_is_python_needs_none_unless_one_is_asked_for(env):
    for command in (["python3", "agent.py"], ["agent"]):
        assert wanted(command, env=env) == Wanted()
        assert "mine" in wanted(command, asked=["mine"], env=env).names
    assert wanted(["git"], env=env).names == tuple(sorted(DEFAULT))


def test_the_settings_stand_in_place_of_the_usual_list(env):
    assert wanted(["git"], configured=("b", "a"), asked=["c"], env=env).names == ("a", "b", "c")
    assert wanted(["git"], configured=(), env=env) == Wanted()
    assert wanted(["python"], configured=("a",), env=env).names == ("a",)


def test_the_users_shell_is_taped_where_it_was_named(env):
    assert not wanted(["git"], env=env).shell
    assert wanted(["git"], asked=["zsh"], env=env).shell
    assert wanted(["git"], configured=("zsh",), env=env).shell


def test_only_programs_that_are_there_get_one(env):
    assert Wanted(names=("gh", "git")).found(env).names == ("git",)


@pytest.mark.parametrize("one", [Wanted(), Wanted(names=("git", "sh"), shell=True, mounted=True)])
def test_what_a_run_says_of_its_shims_is_what_its_replay_has(one):
    assert of_facts(one.as_facts()) == one
    assert of_facts({}) == Wanted()


def test_shims_are_put_first_once_and_taken_out_again(env):
    there = {**env, **put_first(env, "/shims:/bin/zsh")}
    assert there["PATH"] == f"/shims:{env['PATH']}"
    assert (there["SHELL"], there[SHIMS]) == ("/shims/zsh", "/shims:/bin/zsh")
    assert put_first(there, "/shims:/bin/zsh") == {SHIMS: "/shims:/bin/zsh"}
    assert {**there, **take_out(there, there[SHIMS]), SHIMS: ""} == {**env, SHIMS: ""}


def test_a_program_that_has_set_its_own_path_and_shell_keeps_them():
    own = {"PATH": "/own", "SHELL": "/own/fish"}
    assert take_out(own, "/shims:/bin/zsh") == {}
    assert put_first({}, "/shims:/bin/zsh") == {SHIMS: "/shims:/bin/zsh"}


def test_programs_of_many_trades_and_scripts_are_not_covered(tmp_path):
    (tmp_path / "busybox").write_bytes(b"\x7fELF")
    (tmp_path / "gh").symlink_to("busybox")
    (tmp_path / "git").write_bytes(b"\x7fELF")
    (tmp_path / "claude").write_text("#!/usr/bin/env node\n")
    found = covered(["claude", "gh", "git"], {"PATH": str(tmp_path)})
    assert found.pop(os.path.realpath(tmp_path / "git")) == "git"
    assert all(not file.startswith(str(tmp_path)) for file in found)
