"""Calls of libraries while they are loaded: folded, not counted, not targets of chaos."""

import subprocess
import sys

import pytest

from playhead import events
from playhead.replay.matching.taped import load
from playhead.replay.modes.chaos_trials import trials
from playhead.story import tell
from playhead.story.comparison.compare import compare
from playhead.story.run_clock import position_of
from playhead.story.shape import NoteItem
from playhead.tape.reader import Tape
from playhead.views.text.tree import tree_lines


@pytest.fixture
def story(forge):
    """Two library calls in 3 s of imports, then the agent's own command and its end."""
    tape = forge()
    for name in ("ldconfig", "uname"):
        tape.now += 1.5
        asked = tape.call("process", name, command=f"{name} -p", start_up="ctypes.util")
        tape.outcome(asked, value=0)
    tape.event("note", {"stream": "stderr"})
    own = tape.call("process", "ls", command="ls")
    tape.now += 1
    tape.outcome(own, value=0)
    return tell(Tape(tape.end()))


def test_one_line_stands_for_the_calls_of_libraries(story):
    lines = [line for line in tree_lines(story) if line.item is not None]
    notes = [one.item for one in lines if getattr(one.item, "kind", "") == events.START_UP]
    assert [note.data["programs"] for note in notes] == ["ldconfig, uname"]
    assert [line.item.name for line in lines if hasattr(line.item, "number")] == ["ls"]
    shown = [line.item for line in tree_lines(story, start_up=True) if line.item is not None]
    assert [one.name for one in shown if hasattr(one, "number")] == ["ldconfig", "uname", "ls"]


def test_calls_of_libraries_keep_their_numbers_and_are_not_counted(story):
    assert [call.number for call in story.calls()] == [1, 2, 3]
    assert (story.totals.calls, story.totals.process_calls) == (1, 1)
    assert story.totals.emitted == 1


def test_calls_of_libraries_are_not_steps_of_a_comparison(story):
    assert [step.left.name for step in compare(story, story).steps] == ["ls"]


def test_the_clock_of_a_run_starts_with_the_agent(story):
    first, _, own = story.calls()
    note = next(
        one for one in story.items.values() if isinstance(one, NoteItem) and one.kind == "note"
    )
    assert position_of(story, first) == 0
    assert position_of(story, note) == 0
    assert position_of(story, own) < 10**9
    assert story.start_up_ns >= 3 * 10**9


def test_chaos_leaves_calls_of_libraries_alone_and_counts_them_as_a_replay_does(forge):
    tape = forge()
    for data in ({"start_up": "uuid"}, {}):
        asked = tape.call("process", "uname", command="uname", **data)
        tape.outcome(asked, value=0)
    specs = {one.spec.partition("=")[0] for one in trials(load(Tape(tape.end())), 50, 7)}
    assert specs == {"process:2"}


PROGRAM = """
import sys
sys.path.insert(0, "site-packages")
import loud
loud.later()
import mine
import platform
platform.processor()
"""
OWN = "import subprocess\nsubprocess.run(['true'])\n"


def test_a_call_belongs_to_a_library_while_it_is_imported_or_reads_the_machine(tmp_path):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "loud.py").write_text(f"{OWN}def later(): subprocess.run(['true'])\n")
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "agent.py").write_text(PROGRAM)
    store = tmp_path / "store"
    recording = [sys.executable, "-m", "playhead", "record", "--store", store, "--"]
    subprocess.run([*recording, sys.executable, "agent.py"], cwd=tmp_path, check=True, timeout=60)
    (run,) = (store / "runs").iterdir()
    libraries = [call.facts.get(events.BY_LIBRARY) for call in tell(Tape(run)).calls()]
    assert libraries == ["loud", None, None, "platform"]
