import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_for_a_shell_are_printed(playhead, shell):
    ended = playhead("completion", shell)
    assert ended.code == 0
    assert f"_PLAYHEAD_COMPLETE={shell}_complete" in ended.out


def completed(store, words, unfinished):
    program = "from playhead.cli import main; main()"
    line = " ".join(["playhead", *words, unfinished])
    environ = {
        **os.environ,
        "_PLAYHEAD_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) + 1),
        "PLAYHEAD_HOME": str(store),
    }
    argv = [sys.executable, "-c", f"import sys; sys.argv[0] = 'playhead'; {program}"]
    told = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False).stdout
    return [item.partition(",")[2] for item in told.splitlines() if item]


def test_runs_are_completed_by_id(forge, store):
    forge("20261115-071105-k3f9").end()
    forge("20261116-081105-b2c7").end()
    assert completed(store, ["show"], "20261116") == ["20261116-081105-b2c7"]
    assert completed(store, ["show"], "l") == ["last"]
    assert len(completed(store, ["verify"], "2026")) == 2


def test_verbs_and_options_are_completed(store):
    assert completed(store, [], "sho") == ["show"]
    assert "--status" in completed(store, ["list"], "--st")


def test_a_store_that_cannot_be_read_completes_nothing_and_says_nothing(store):
    assert completed(store, ["show"], "2026") == []
