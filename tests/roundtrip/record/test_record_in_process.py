"""The same from inside: `playhead.record(intercept=True)` takes the children of the program along."""

import sys

import pytest

PROGRAM = """
import os, subprocess, sys
import playhead
popen = subprocess.Popen.__init__
with playhead.record(intercept=True, name="inside") as run:
    subprocess.run([sys.executable, "-c", "import subprocess; subprocess.run(['true'])"], env={})
subprocess.run([sys.executable, "-c", "pass"])
print(subprocess.Popen.__init__ is popen, os.environ.get("PYTHONPATH"))
"""


@pytest.fixture
def ended(record):
    return record.bare(sys.executable, "-c", PROGRAM)


def test_children_join_a_run_that_was_begun_in_the_program(record, ended):
    assert ended.returncode == 0, ended.stderr
    take = record.take()
    first, child = take.of("segment.start")
    made, below = take.calls()
    assert child.parent == made.ref
    assert below.segment == child.segment
    assert below.data["request"]["argv"] == ["true"]
    assert first.data["pid"] != child.data["pid"]
    assert take.status == "ok"


def test_after_its_end_everything_is_as_it_was(record, ended):
    assert ended.stdout == "True None\n"
    assert ended.stderr == ""
    take = record.take()
    assert len(take.of("segment.start")) == 2
    assert not (take.run / "guests.json").exists()
