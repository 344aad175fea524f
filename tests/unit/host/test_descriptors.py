"""A forked child that lets go of its parent's descriptors has numbers of its own from there on."""

import subprocess
import sys

import pytest

# Containers without /dev/fd cannot list the open descriptors.
BARE = """
import os

def listdir(path):
    raise FileNotFoundError(path)

os.listdir = listdir
"""

GARBAGE_OF_THE_PARENT = """
import gc, os
from playhead.host.descriptors import keep_only

class Held: pass

gc.disable()
held = Held()
held.itself, held.file = held, open(os.devnull)
number = held.file.fileno()
del held
if os.fork() == 0:
    keep_only()
    os.dup2(os.open(os.devnull, os.O_RDONLY), number)
    gc.collect()
    os.fstat(number)
    os._exit(0)
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_what_is_garbage_of_the_parent_closes_nothing_of_the_child():
    done = subprocess.run([sys.executable, "-c", GARBAGE_OF_THE_PARENT], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("can_list", [True, False], ids=["listed", "bare container"])
def test_only_what_is_named_stays_open(can_list):
    code = """
import os
from playhead.host.descriptors import keep_only
kept, other = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)
keep_only(kept)
os.fstat(kept)
try:
    os.fstat(other)
except OSError:
    os._exit(7)
"""
    argv = [sys.executable, "-c", code if can_list else BARE + code]
    assert subprocess.run(argv, check=False).returncode == 7
