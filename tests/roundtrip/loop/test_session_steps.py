"""A shell script that goes through a session step by step, as anybody would write it."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from playhead.tape.reader import Tape

SCRIPT = """
set -u
playhead() { PYTHON -m playhead "$@"; }
playhead session init fix --stage plan:1 --stage work:5 --level LEVEL || exit
while env=$(playhead session iteration-start fix --context context.md); do
  eval "$env"
  prompt=prompts/$PLAYHEAD_STAGE.md
  playhead session prompt fix $prompt --command claude
  PYTHON AGENT < $prompt > out.jsonl
  playhead session response fix out.jsonl --exit-code $? || break
done
playhead session end
"""


def run_script(project, level, script=SCRIPT, **more):
    python, agent = shlex.quote(sys.executable), shlex.quote(project.agent[-1])
    script = script.replace("PYTHON", python).replace("AGENT", agent).replace("LEVEL", level)
    return subprocess.run(
        ["bash", "-c", script], cwd=project.folder, env=project.env(**more),
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_script_leaves_the_same_as_a_loop(project):
    done = run_script(project, "full")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["continue", "continue", "stop"]
    names = ("context.md", "prompt.md", "response.jsonl", "status.json", "text.md", "timing.json")
    assert [name.rpartition("/")[2] for name in project.files()] == list(names) * 3
    story = project.json("show", "fix")
    assert (story["status"], story["totals"]["llm_calls"], story["totals"]["cost_usd"]) == (
        "ok",
        6,
        0.03,
    )
    project.playhead("verify", "fix")
    # One segment for all the steps, and nothing that a replay could take for a command.
    assert len(list(project.run().glob("tape-*.jsonl"))) == 1
    assert "has no command" in project.playhead("replay", "fix", code=4).stderr


ONE_CALL = """
set -u
playhead() { PYTHON -m playhead "$@"; }
playhead session init fix --stage plan:1 --stage work:5 SWITCH || exit
while env=$(playhead session next fix --prompt 'prompts/{stage}.md' --context context.md \\
              --response out.jsonl --exit-code $? --command claude); do
  eval "$env"
  echo "$PLAYHEAD_STAGE $PLAYHEAD_ITERATION"
  PYTHON AGENT < "$PLAYHEAD_PROMPT" > out.jsonl
done
playhead session end
"""


@pytest.mark.parametrize("switch", ["--record", "--record-level full", "PLAYHEAD_RECORD"])
def test_one_call_an_iteration_leaves_the_same_as_three(project, switch):
    level = "full" if "full" in switch else "standard"
    more = {switch: "1"} if switch.isupper() else {}
    script = ONE_CALL.replace("SWITCH", "" if more else switch)
    done = run_script(project, level, script, **more)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "plan 1\nwork 1\nwork 2\n"
    one = {name: path.stat().st_size for name, path in project.files().items()}
    steps = [turn_steps(project, "fix")]
    project.playhead("verify", "fix")
    if level == "full":
        # A test needs a command to run, and a script has none on the tape.
        assert "no test" in project.playhead("promote", "fix", "tests", "--fixtures").stdout
        assert [path.name for path in (project.folder / "tests").iterdir()] == ["fixtures"]
    run_script(project, level, SCRIPT.replace(" fix", " fix2"))
    three = {name: path.stat().st_size for name, path in project.files("fix2").items()}
    assert sorted(one) == sorted(three)
    assert [one[name] for name in one if "timing" not in name and "response" not in name] == [
        three[name] for name in three if "timing" not in name and "response" not in name
    ]
    steps.append(turn_steps(project, "fix2"))
    assert steps[0] == steps[1]


def turn_steps(project, session):
    items = [one for one in project.json("show", session)["tree"] if one["type"] == "turn"]
    return [(item["name"], item["decision"], item["reason"], item["how"]) for item in items]


def test_a_script_is_not_recorded_unless_it_is_switched_on(project):
    done = run_script(project, "", ONE_CALL.replace("SWITCH", ""))
    assert done.stdout == "plan 1\nwork 1\nwork 2\n"
    assert project.state()["counts"] == [1, 2]
    assert list(project.store.glob("runs/*")) == []
    more = run_script(project, "", ONE_CALL.replace("SWITCH", "--force"), PLAYHEAD_RECORD="0")
    assert more.stdout == done.stdout
    assert list(project.store.glob("runs/*")) == []


def test_a_failed_iteration_ends_the_script_of_one_call_and_resume_repeats_it(project):
    failed = run_script(project, "", ONE_CALL.replace("SWITCH", "--record"), AGENT_FAILS_AT="work1")
    assert failed.stdout == "plan 1\nwork 1\n"
    assert "work 1/5 failed: API Error: 529 overloaded" in failed.stderr
    assert project.json("show", "fix")["status"] == "failed"
    again = run_script(project, "", ONE_CALL.replace("SWITCH", "--resume"))
    assert again.stdout == "work 1\nwork 2\n"
    assert project.json("show", "fix")["status"] == "ok"
    assert project.json("show", "fix")["totals"]["failed_turns"] == 1


def test_an_iteration_of_a_script_costs_one_start_of_python(project):
    """The time of a start depends on the machine; so the test counts starts, and compares with a bare one."""
    step(project, "init", "fix", "--stage", "work:*", "--record")
    (project.folder / "out.txt").write_text("Done.")
    words = ("session", "next", "fix", "--prompt", "prompts/work.md", "--response", "out.txt")
    loaded = [sys.executable, "-X", "importtime", "-m", "playhead", *words]
    for _ in range(2):
        done = subprocess.run(
            loaded,
            cwd=project.folder,
            env=project.env(),
            capture_output=True,
            text=True,
            check=True,
        )
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    slow = ("click", "rich", "msgspec", "asyncio", "sqlite3", "playhead.cli", "playhead.config")
    assert not modules & set(slow)
    assert sum(name.startswith("playhead.") for name in modules) <= 54


def test_a_failed_step_ends_the_script_and_the_run(project):
    done = run_script(project, "standard", AGENT_FAILS_AT="work1")
    assert done.stdout.split() == ["continue", "error"]
    story = project.json("show", "fix")
    assert (story["status"], story["failure"]["message"]) == ("failed", "API Error: 529 overloaded")


def step(project, *words, code=0, **more):
    return project.playhead("session", *words, code=code, **more).stdout


def test_a_session_that_was_broken_off_is_resumed(project):
    step(project, "init", "fix", "--stage", "work:2", "--level", "full")
    step(project, "iteration-start", "fix")
    step(project, "prompt", "fix", "prompts/work.md")
    # Here the script dies. The run is not marked as over by anybody.
    step(project, "init", "fix", code=2)
    step(project, "init", "fix", "--resume")
    assert "PLAYHEAD_ITERATION=1" in step(project, "iteration-start", "fix")
    (project.folder / "answer.txt").write_text("Fine.")
    assert step(project, "response", "fix", "answer.txt") == "continue\n"
    step(project, "end", PLAYHEAD_SESSION="fix")
    tape = Tape(project.run())
    assert (tape.manifest.status, tape.manifest.generation) == ("ok", 1)
    project.playhead("verify", "fix")
    numbers = [path.name[:3] for path in project.run().glob("stage-00-work/iterations/*")]
    assert numbers == ["001", "001"]


def test_steps_without_a_session_say_what_to_do(project):
    said = project.playhead("session", "prompt", "none", "prompts/work.md", code=2).stderr
    assert "playhead session init none" in said
    step(project, "init", "fix")
    said = project.playhead("session", "response", "fix", "prompts/work.md", code=2).stderr
    assert "playhead session iteration-start fix" in said


def test_a_session_that_has_ended_takes_no_step_until_it_is_resumed(project):
    step(project, "init", "fix", "--stage", "work:2", "--level", "full")
    step(project, "next", "fix", "--prompt", "prompts/work.md")
    step(project, "end", "fix")
    before = [path.read_bytes() for path in sorted(project.run().glob("tape-*.jsonl"))]
    for words in (
        ("next", "fix"),
        ("iteration-start", "fix"),
        ("prompt", "fix", "prompts/work.md"),
    ):
        said = project.playhead("session", *words, code=2).stderr
        assert "playhead session init fix --resume" in said
    step(project, "end", "fix")
    assert [path.read_bytes() for path in sorted(project.run().glob("tape-*.jsonl"))] == before
    step(project, "init", "fix", "--resume")
    assert "PLAYHEAD_ITERATION=1" in step(project, "next", "fix")


def test_what_the_quick_way_does_not_understand_the_command_line_explains(project):
    said = project.playhead("session", "init", "fix", "--level", "huge", code=2).stderr
    assert "'huge' is not one of" in said
    assert "eval" in project.playhead("session", "--help").stdout
    assert json.loads(step(project, "init", "fix", "--json"))["session"] == "fix"


def test_a_run_that_cannot_be_written_costs_the_recording_alone(project):
    step(project, "init", "fix", "--stage", "work:2", "--level", "full")
    os.rename(project.run(), project.run("gone"))
    project.run().write_text("in the way")
    for number in ("1", "2"):
        begun = project.playhead("session", "iteration-start", "fix")
        assert f"PLAYHEAD_ITERATION={number}" in begun.stdout
        assert begun.stderr.count("\n") == begun.stderr.count("cannot be written") == 1
        step(project, "prompt", "fix", "prompts/work.md")
        assert step(project, "response", "fix", "prompts/work.md") == "continue\n"
    step(project, "iteration-start", "fix", code=1)
    assert "could not be closed" in project.playhead("session", "end", "fix").stderr
