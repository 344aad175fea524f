"""The short form of `make test-attack`: some bombs and mutants, and the same limits."""

import json
import subprocess
import sys

import pytest
from tests.attack import bombs
from tests.attack.measured import playhead
from tests.attack.parts import wrong
from tests.attack.result import MOST_MB


@pytest.mark.parametrize("bomb", bombs.BOMBS, ids=lambda one: one.__name__)
def test_a_bomb_ends_soon_and_in_little_memory(tmp_path, bomb):
    bomb(tmp_path)
    done = playhead(tmp_path, ("show", bombs.RUN), most_s=60)
    assert wrong(done) is None, done.out[-500:]


def test_each_verb_works_on_a_tape_and_no_mutant_breaks_it():
    """Some hundred mutants: no traceback, no program started, nothing read or written outside."""
    argv = [sys.executable, "-m", "tests.attack.mutant_worker", "5", "0", "200"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=110)
    said = [json.loads(one) for one in done.stdout.splitlines()]
    assert [one for one in said if "at" not in one] == []
    assert said[-1]["at"] == 200
    assert said[-1]["mb"] < MOST_MB
