"""A shell script that goes through a session step by step, as anybody would write it."""

import json
import os
import shlex
import subprocess
import sys

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


def run_script(project, level, **more):
    python, agent = shlex.quote(sys.executable), shlex.quote(project.agent[-1])
    script = SCRIPT.replace("PYTHON", python).replace("AGENT", agent).replace("LEVEL", level)
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
