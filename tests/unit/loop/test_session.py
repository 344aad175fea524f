"""Sessions from Python: iterations, decisions, what is kept, and what a bad disk does."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from playhead import loop, record
from playhead.errors import StoreError, UsageError
from playhead.loop.plan import Plan, argv_of, filled
from playhead.loop.stages import parse_stages
from playhead.loop.state import folder_of, read_state
from playhead.story import tell
from playhead.tape.reader import Tape


def made(session, count, *, say="stop"):
    numbers = []
    for iteration in session.iterations():
        iteration.prompt(f"Do {iteration.name}.")
        iteration.response(f"Did {iteration.name}.")
        numbers.append(iteration.name)
        if len(numbers) == count:
            iteration.decide(say)
    return numbers


def test_an_exception_between_two_iterations_fails_the_run(tmp_path):
    def divide():
        with loop.open_session("s", ["work:5"], record=True, store=tmp_path) as session:
            for iteration in session.iterations():
                iteration.prompt("Divide.")
                iteration.end(exit_code=0)
                _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        divide()
    story = tell(Tape(tmp_path / "runs" / "s"))
    assert (story.status, story.failure.type) == ("failed", "ZeroDivisionError")
    assert story.turns()[0].failure is None


def test_iterations_run_through_the_stages_until_one_says_stop(tmp_path):
    with loop.open_session("s", ["plan:1", "work:5"], record=True, store=tmp_path) as session:
        assert made(session, 3) == ["plan 1/1", "work 1/5", "work 2/5"]
    assert session.status == "done"
    story = tell(Tape(tmp_path / "runs" / "s"))
    assert [turn.name for turn in story.turns()] == ["plan 1/1", "work 1/5", "work 2/5"]
    assert (story.status, story.totals.process_calls) == ("ok", 3)


def test_an_exception_fails_the_iteration_and_the_run_and_passes_through(tmp_path):
    def divide():
        with loop.open_session("s", ["work:5"], record=True, store=tmp_path) as session:
            for iteration in session.iterations():
                iteration.prompt("Divide.")
                _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        divide()
    story = tell(Tape(tmp_path / "runs" / "s"))
    assert (story.status, story.turns()[0].failure.message) == (
        "failed", "ZeroDivisionError: division by zero",
    )  # fmt: skip
    with loop.open_session("s", ["work:5"], record=True, store=tmp_path, resume=True) as session:
        assert made(session, 1) == ["work 1/5"]
    assert tell(Tape(tmp_path / "runs" / "s")).status == "ok"


def test_inside_of_a_recorded_run_a_session_is_a_part_of_it(tmp_path):
    with (
        record(name="outer", store=tmp_path) as run,
        loop.open_session("s", ["work:1"], store=tmp_path) as session,
    ):
        made(session, 1)
    assert (run.path / "stage-00-work/iterations/001/prompt.md").read_text() == "Do work 1/1."
    assert [turn.name for turn in tell(Tape(run.path)).turns()] == ["work 1/1"]
    assert not (tmp_path / "runs" / "s").exists()


def test_secrets_are_taken_out_before_anything_is_written(tmp_path):
    key = "sk-ant-api03-" + "k3Yx9" * 19
    with loop.open_session("s", ["work:1"], record=True, level="full", store=tmp_path) as session:
        for iteration in session.iterations():
            iteration.prompt(f"Use {key}.")
            for piece in ("I use ", key[:40], key[40:], " now."):
                iteration.piece(piece.encode())
    for path in (tmp_path / "runs").rglob("*"):
        assert path.is_dir() or key.encode() not in path.read_bytes(), path


def test_a_level_nobody_knows_is_refused(tmp_path):
    with pytest.raises(UsageError, match="minimal"):
        loop.open_session("s", ["work"], record=True, level="huge", store=tmp_path)


def test_stages_may_become_longer_but_not_others(tmp_path):
    with loop.open_session("s", ["work:1"], store=tmp_path) as session:
        made(session, 9)
    with pytest.raises(UsageError, match="has the stages work"):
        loop.open_session("s", ["plan:1"], store=tmp_path, resume=True)
    with loop.open_session("s", ["work:3"], store=tmp_path, resume=True) as session:
        assert made(session, 9) == ["work 2/3", "work 3/3"]


def test_a_store_that_cannot_be_made_is_said_and_the_work_goes_on(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with loop.open_session("s", ["work:2"], record=True, store=tmp_path / "file" / "x") as session:
        assert made(session, 9) == ["work 1/2", "work 2/2"]
    said = capsys.readouterr().err
    assert "not recorded" in said
    assert said.count("cannot be written") == 1


def test_a_damaged_state_is_no_state_but_an_error(tmp_path):
    folder = folder_of(tmp_path, "s")
    folder.mkdir(parents=True)
    (folder / "state.json").write_text('{"session": "s", "stages": 3}')
    with pytest.raises(StoreError, match="--force"):
        read_state(folder)
    with loop.open_session("s", ["work:1"], store=tmp_path, force=True) as session:
        made(session, 9)
    assert json.loads((folder / "state.json").read_text())["status"] == "done"


def test_placeholders_are_filled_once_and_other_braces_stay():
    assert filled('{"a": {stage}, "b": {x}}', {"stage": "{x}", "y": ""}) == '{"a": {x}, "b": {x}}'
    told = dict.fromkeys(["SESSION", "STAGE", "ITERATION", "STATUS"], "v")
    told = {f"PLAYHEAD_{name}": value for name, value in told.items()}
    assert argv_of(["{prompt}", "{context}"], "about {stage}", told) == ["about {stage}", ""]


def test_a_command_is_run_from_python_as_by_the_command_line(tmp_path):
    plan = Plan(
        session="s", stages=parse_stages(["work:2"]), store=tmp_path, record=True,
        command=("sh", "-c", "cat; echo stop > $PLAYHEAD_STATUS"),
    )  # fmt: skip
    result = loop.run(plan)
    assert (result.status, result.iterations, result.exit_code) == ("done", 1, 0)


def test_a_session_that_goes_on_is_nobody_elses(tmp_path):
    with loop.open_session("s", ["work:2"], store=tmp_path) as session:
        for more in ({}, {"resume": True}, {"force": True}):
            with pytest.raises(UsageError, match="still running"):
                loop.open_session("s", ["work:2"], store=tmp_path, **more)
        made(session, 9)
    assert not session.status_file.parent.exists()


def test_a_session_whose_run_was_pruned_may_be_begun_anew(tmp_path):
    with loop.open_session("s", ["work:1"], record=True, store=tmp_path) as session:
        made(session, 9)
    with pytest.raises(UsageError, match="exists already"):
        loop.open_session("s", ["work:1"], store=tmp_path)
    shutil.rmtree(tmp_path / "runs" / "s")
    with loop.open_session("s", ["work:1"], store=tmp_path) as session:
        assert made(session, 9) == ["work 1/1"]


def test_a_scratch_folder_of_somebody_else_is_not_used(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"playhead-{os.getuid()}").symlink_to(elsewhere)
    with loop.open_session("s", ["work:1"], store=tmp_path / "store") as session:
        made(session, 9)
    assert list(elsewhere.iterdir()) == []
    assert "belongs to another user" in capsys.readouterr().err


PROGRAM = """
import sys
from playhead import loop
from playhead.loop.stages import parse_stages

plan = loop.Plan(
    session="s", stages=parse_stages(["work:3"]), record=True, level="full",
    command=("sh", "-c", "echo $$ $PLAYHEAD_ITERATION; [ $PLAYHEAD_ITERATION != 2 ] || echo stop > $PLAYHEAD_STATUS"),
)
print(loop.run(plan, loop.Progress()).status)
"""


def test_a_loop_in_a_program_is_replayed_with_the_program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {**os.environ, "PLAYHEAD_HOME": str(tmp_path / "store")}

    def ran(*words):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done

    first = ran("program.py")
    again = ran("-m", "playhead", "replay", "s")
    assert first.stdout.endswith("done\n")
    assert again.stdout == first.stdout
