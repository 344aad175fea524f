"""Nobody touches a tape that somebody else may be writing to."""

import pytest

from playhead.errors import UsageError
from playhead.tape.care.verify import refuse_live, verify
from playhead.tape.reader import Tape


def ask(run, *, force=False):
    refuse_live(Tape(run.path), verify(run.path), force=force)


def test_a_finished_run_may_be_touched(small):
    ask(small)


def test_a_run_whose_process_lives_may_not(run, running):
    run.segment(str(running["pid"]), **running).end()
    run.manifest(status="running", **running)
    with pytest.raises(UsageError, match="still in progress"):
        ask(run, force=True)


def test_a_child_that_outlives_its_run_keeps_it_from_being_touched(small, running):
    small.segment(str(running["pid"]), **running)
    small.manifest(exit_code=0)
    with pytest.raises(UsageError, match=f"Process {running['pid']} of run .* is still writing"):
        ask(small, force=True)


def test_a_run_that_was_killed_here_may_be_touched(run, running):
    run.segment("100", host=running["host"])
    run.manifest(status="running", host=running["host"], pid=100, birth="another")
    ask(run)


def test_a_run_of_another_host_is_believed_unless_a_person_knows_better(run):
    root = run.segment()
    run.manifest(status="running")
    with pytest.raises(UsageError, match=r"recorded on nowhere.*--force"):
        ask(run)
    ask(run, force=True)
    root.end()
    ask(run)
