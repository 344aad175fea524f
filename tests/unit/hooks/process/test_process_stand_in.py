"""Both stand-ins do as they are told."""

import os
import signal
import subprocess
import sys

import pytest

from playhead.hooks.process.stand_in import IN_SHELL, chosen, in_shell

here = sys.platform == "linux" and os.uname().machine == "x86_64"


def end_of(stand_in, told):
    with subprocess.Popen(
        [stand_in.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}
    ) as process:
        assert process.communicate(told)[0] == b""
        return process.returncode


@pytest.mark.parametrize("code", [0, 3, 255, -signal.SIGTERM, -signal.SIGSEGV, -signal.SIGKILL])
@pytest.mark.parametrize("choose", [chosen, lambda: IN_SHELL], ids=["chosen", "shell"])
def test_a_stand_in_ends_with_the_code_or_by_the_signal_that_it_is_told(choose, code):
    stand_in = choose()
    assert end_of(stand_in, stand_in.end_message(code)) == code


@pytest.mark.parametrize("choose", [chosen, lambda: IN_SHELL], ids=["chosen", "shell"])
def test_a_stand_in_that_is_told_nothing_leaves_when_nobody_can_tell_it_any_more(choose):
    assert end_of(choose(), b"") == 0


@pytest.mark.skipif(not here, reason="the small one is for Linux on x86-64")
def test_the_small_one_is_made_anew_where_the_program_closed_what_it_did_not_open():
    first = chosen()
    assert not first.is_shell
    os.close(int(first.path.rpartition("/")[2]))
    again = chosen()
    assert not again.is_shell
    assert end_of(again, again.end_message(5)) == 5


@pytest.mark.skipif(not here, reason="the small one is for Linux on x86-64")
def test_a_program_that_hears_of_its_children_never_hears_of_the_one_by_which_it_is_tried():
    script = (
        "import os, signal\n"
        "heard = []\n"
        "signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))\n"
        "from playhead.hooks.process.stand_in import chosen\n"
        "print(chosen().is_shell, heard)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert told.stdout == b"True []\n"


def test_no_core_is_left_by_a_death_that_is_only_played():
    assert in_shell(-11).startswith("ulimit -c 0;")
