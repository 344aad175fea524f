"""The manifest that a tape implies."""

import pytest

from playhead.tape.care.rebuild_manifest import manifest_from
from playhead.tape.manifest import read_manifest
from playhead.tape.reader import Tape


def made(run):
    return manifest_from(Tape(run.path).rows(), folder="folder")


def test_it_says_what_the_recorder_would_have_said(small):
    written, found = read_manifest(small.path), made(small)
    for name in ("run", "status", "exit_code", "events", "segments", "level", "host"):
        assert getattr(found, name) == getattr(written, name), name
    assert (found.pid, found.birth, found.python) == (100, "7", "3.11.7")
    assert found.started_at == "2001-09-09T01:46:40.001002Z"
    assert (found.duration_s, found.ended_at) == (0.000009, "2001-09-09T01:46:40.001008Z")


def test_without_an_end_the_run_may_still_be_going_on(run):
    run.segment().add("run.start", {"name": "x"})
    assert (made(run).status, made(run).ended_at) == ("running", None)


def test_a_failed_run_says_why(run):
    error = {"$exception": "builtins:ValueError", "message": "no", "args": ["no"]}
    run.segment().add("run.end", {"status": "failed", "error": error})
    assert made(run).error == {"type": "builtins:ValueError", "message": "no"}


def test_a_resumed_run_speaks_of_its_last_process(run):
    run.segment("100").add("run.end", {"status": "failed"})
    again = run.segment("200", generation=1)
    again.add("run.start", {"name": "again"})
    run.segment("201", generation=1)
    found = made(run)
    assert (found.pid, found.generation, found.status, found.name) == (200, 1, "running", "again")


def test_what_was_lost_is_counted_from_ends_and_gaps(run):
    ended, killed = run.segment("100"), run.segment("101")
    ended.add("gap", {"lost": 2})
    ended.add("segment.end", {"events": 3, "lost": 5})
    killed.add("gap", {"lost": 3})
    assert made(run).lost == 8


def test_the_folder_names_the_run_where_the_tape_does_not(run):
    run.segment(start=False).add("x")
    assert made(run).run == "folder"


@pytest.mark.parametrize("odd", [None, [], 7, "x", {"run": 7, "status": [], "took_ns": "x"}])
def test_odd_data_is_passed_over(run, odd):
    root = run.segment(run=odd, generation=odd)
    for kind in ("run.start", "run.end", "segment.end", "gap", "segment.start"):
        root.add(kind, odd)
    assert made(run).events == 6


def test_absurd_clocks_are_passed_over(run):
    root = run.segment(start=False)
    root.add("run.start", {}, wall=10**30)
    root.add("run.end", {"status": "ok"}, wall=-5)
    assert made(run).started_at.startswith("9999-12-31")
