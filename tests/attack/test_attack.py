"""The short form of `make test-attack`: some bombs and mutants, and the same limits."""

import subprocess
import sys

import pytest
from tests.attack import bombs
from tests.attack.__main__ import MOST_MB, _wrong
from tests.attack.measured import playhead


@pytest.mark.parametrize("bomb", bombs.BOMBS, ids=lambda one: one.__name__)
def test_a_bomb_ends_soon_and_in_little_memory(tmp_path, bomb):
    bomb(tmp_path)
    done = playhead(tmp_path, ("show", bombs.RUN), most_s=60)
    assert _wrong(done) is None, done.out[-500:]


def test_a_hundred_mutants_break_no_verb():
    program = "from tests.attack.mutants import one_batch; print(one_batch(100, 5))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=110
    )
    count, found, mb = eval(done.stdout, {"Found": lambda **more: more})
    assert (count, found) == (100, [])
    assert mb < MOST_MB
