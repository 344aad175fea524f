"""A run ends its own processes, and never those of another run."""

import os
import subprocess

import pytest

from playhead.launch.sidecar.process_tree import HeldNamespace


@pytest.fixture
def fenced():
    """A process in a mount namespace of its own, which ends when its stdin closes."""
    argv = ["unshare", "--mount", "sh", "-c", "echo ready; cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        if child.stdout.readline() != b"ready\n":
            pytest.skip("needs a mount namespace")
        yield child


def test_the_number_of_a_held_namespace_is_given_to_no_other(fenced):
    held = HeldNamespace(fenced.pid)
    assert held.name is not None
    fenced.stdin.close()
    fenced.wait()
    for _ in range(20):
        argv = ["unshare", "--mount", "readlink", "/proc/self/ns/mnt"]
        assert subprocess.check_output(argv, text=True).strip() != held.name
    held.close()
    held.close()


def test_the_namespace_that_we_are_in_ourselves_is_not_one_of_a_fence():
    held = HeldNamespace(os.getpid())
    assert held.name is None
    held.close()
