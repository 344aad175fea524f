"""Errors, Ctrl-C, full disks: what a loop does then, and how it goes on."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys

import pytest

RECORD = ("--record", "--record-level")


def so_far(project):
    state = project.state()
    return state["status"], state["counts"]


def test_a_failed_iteration_ends_the_loop_and_is_made_again_on_resume(project):
    failed = project.loop(*RECORD, "standard", code=1, AGENT_FAILS_AT="work1")
    assert "529 overloaded" in failed.stderr
    assert so_far(project) == ("error", [1, 0])
    story = project.json("show", "fix")
    assert (story["status"], story["failure"]["message"]) == ("failed", "API Error: 529 overloaded")
    project.loop(*RECORD, "standard", "--resume")
    assert so_far(project) == ("done", [1, 2])
    # The one that failed is kept beside the one that was made in its place.
    kept = sorted(path.name for path in (project.run() / "stage-01-work/iterations").iterdir())
    assert [name.partition(".old.")[0] for name in kept] == ["001", "001", "002"]
    assert [turn["name"] for turn in turns(project)] == [
        "plan 1/1",
        "work 1/5",
        "work 1/5",
        "work 2/5",
    ]


def test_a_session_that_failed_and_was_resumed_is_replayed_as_a_whole(project):
    writes = {"AGENT_WRITES": "log.txt"}
    failed = project.loop(*RECORD, "full", code=1, AGENT_FAILS_AT="work1", **writes)
    resumed = project.loop(*RECORD, "full", "--resume", **writes)
    replayed = project.playhead("replay", "fix")
    assert "identical" in replayed.stderr, "the files of the calls after the resumption too"
    assert replayed.stdout == failed.stdout + resumed.stdout


LONGER = ("--stage", "plan:1", "--stage", "work:7", "--stage", "check:1")


def resumed(project, *words, **more):
    stages = (*LONGER, "--prompt", "prompts/{stage}.md")
    return project.playhead(
        "loop", "--session", "fix", *stages, "--resume", *words, *project.agent, **more
    )


@pytest.mark.parametrize("words", [(), ("--record",), (*RECORD, "full")])
def test_a_session_resumed_with_more_stages_replays_as_a_whole(project, words):
    failed = project.loop(*RECORD, "full", code=1, AGENT_FAILS_AT="work2")
    (project.folder / "prompts" / "check.md").write_text("Check it.\n")
    # People edit the prompt of a session that failed.
    (project.folder / "prompts" / "work.md").write_text("Do the work better.\n")
    longer = resumed(project, *words, AGENT_STOPS_AT="work6")
    assert project.state()["counts"] == [1, 6, 1]
    for _ in range(2):
        replayed = project.playhead("replay", "fix")
        assert "identical" in replayed.stderr, replayed.stderr
        assert replayed.stdout == failed.stdout + longer.stdout


def test_a_session_that_was_done_and_got_more_stages_replays_as_a_whole(project):
    first = project.loop(*RECORD, "full")
    (project.folder / "prompts" / "check.md").write_text("Check it.\n")
    second = resumed(project)
    replayed = project.playhead("replay", "fix")
    assert "identical" in replayed.stderr, replayed.stderr
    assert replayed.stdout == first.stdout + second.stdout


def test_a_session_that_is_recorded_from_its_middle_replays_from_there(project):
    project.loop(code=1, AGENT_FAILS_AT="work2")
    rest = project.loop(*RECORD, "full", "--resume")
    assert rest.stdout.startswith("work2:")
    replayed = project.playhead("replay", "fix")
    assert "identical" in replayed.stderr, replayed.stderr
    assert replayed.stdout == rest.stdout


def test_a_recorded_session_stays_recorded_when_it_is_resumed_unless_told_otherwise(project):
    project.loop(*RECORD, "standard", code=1, AGENT_FAILS_AT="work1")
    project.loop("--resume", code=1, AGENT_FAILS_AT="work2")
    names = ["plan 1/1", "work 1/5", "work 1/5", "work 2/5"]
    assert [turn["name"] for turn in turns(project)] == names
    project.loop("--resume", "--no-record", AGENT_STOPS_AT="work3")
    assert len(turns(project)) == 4


@pytest.mark.parametrize("level", ["standard", "full"])
def test_ctrl_c_ends_it_cleanly_and_resume_goes_on_there(project, level):
    words = ["loop", "--session", "fix", *project.stages, *RECORD, level, *project.agent]
    env = project.env(AGENT_WAITS_AT="work1")
    running = subprocess.Popen(
        [sys.executable, "-m", "playhead", *words],
        cwd=project.folder, env=env, start_new_session=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not running.stdout.readline().startswith("work1:"):
        assert running.poll() is None
    os.killpg(running.pid, signal.SIGINT)
    said = running.communicate()[1]
    assert running.returncode == 130, said
    assert "continue with --resume" in said
    assert "Traceback" not in said
    assert project.state()["status"] == "interrupted"
    assert project.json("show", "fix")["status"] == "interrupted"
    partial = next((project.run() / "stage-01-work/iterations/001").glob("response.jsonl*"))
    assert partial.stat().st_size > 0
    done = project.loop(*RECORD, level, "--resume")
    assert "plan 1/1" not in done.stderr
    assert "could not be closed" not in done.stderr
    assert project.json("show", "fix")["status"] == "ok"
    assert so_far(project) == ("done", [1, 2])
    project.playhead("verify", "fix")
    if level == "full":
        assert "identical" in project.playhead("replay", "fix").stderr


def test_sigterm_to_the_loop_alone_ends_the_agent_too(project):
    words = ["loop", "--session", "fix", *project.stages, *project.agent]
    running = subprocess.Popen(
        [sys.executable, "-m", "playhead", *words],
        cwd=project.folder, env=project.env(AGENT_WAITS_AT="plan1"), start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert running.stdout.readline().startswith("plan1:")
    running.terminate()
    running.communicate()  # until the agent, which has our pipe as well, is gone
    assert running.returncode == 143
    assert so_far(project)[0] == "interrupted"


def test_a_session_that_exists_is_neither_appended_to_nor_replaced_by_chance(project):
    project.loop(*RECORD, "minimal")
    before = (project.run() / "manifest.json").read_bytes()
    said = project.loop(*RECORD, "minimal", code=2).stderr
    assert "--resume" in said
    assert "--force" in said
    assert (project.run() / "manifest.json").read_bytes() == before


def test_force_starts_over_and_keeps_the_old_one_aside(project):
    project.loop(*RECORD, "minimal")
    old = (project.run() / "manifest.json").read_bytes()
    project.loop(*RECORD, "full", "--force")
    (aside,) = project.store.glob("runs/fix.old.*")
    assert (aside / "manifest.json").read_bytes() == old
    assert list(project.store.glob("sessions/fix.old.*/state.json"))
    assert json.loads((project.run() / "manifest.json").read_text())["level"] == "full"


def test_more_iterations_can_be_asked_for_afterwards(project):
    more = ("--stage", "plan:1", "--prompt", "prompts/plan.md")
    project.playhead("loop", "--session", "s", *more, *project.agent)
    longer = ("--stage", "plan:3", "--prompt", "prompts/plan.md", "--resume")
    project.playhead("loop", "--session", "s", *longer, *project.agent)
    assert project.state("s")["counts"] == [3]


def turns(project):
    events = project.playhead("events", "fix").stdout.splitlines()
    return [one["data"] for one in map(json.loads, events) if one["kind"] == "turn.start"]


def limited():
    """No file may grow beyond this: what a disk says that is full, for whoever may not mount one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, 16_000))


@contextlib.contextmanager
def small_disk(folder):
    """A disk that is soon full; what makes the child's files small where none can be had."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        yield limited
        return
    try:
        yield None
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("level", ["standard", "full"])
def test_a_disk_that_fills_costs_the_recording_and_never_the_loop(project, level):
    words = ["loop", "--session", "fix", *project.stages, *RECORD, level, *project.agent]
    with small_disk(project.store) as limit:
        filler = project.store / "filler"
        if limit is None and level == "standard":
            filler.write_bytes(b"x" * 70_000)
        done = subprocess.run(
            [sys.executable, "-m", "playhead", *words],
            cwd=project.folder, env=project.env(AGENT_SIZE="30000"), capture_output=True, text=True,
            check=False, preexec_fn=limit,
        )  # fmt: skip
        so_it_went = so_far(project)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Done." + "x" * 30_000) == 3
    assert "Traceback" not in done.stderr
    # What the agent decided got through, and how far the loop came is known.
    assert so_it_went == ("done", [1, 2])
    if limit is None or level == "full":
        assert done.stderr.count("cannot be written") == 1


def test_a_dry_run_runs_nothing(project):
    said = project.loop("--dry-run", *RECORD, "full").stdout
    assert "work: at most 5 ×" in said
    assert "recorded at full" in said
    assert not (project.store / "sessions").exists()


def test_a_missing_prompt_is_said_before_anything_runs(project):
    (project.folder / "prompts" / "work.md").unlink()
    assert "prompts/work.md" in project.loop(code=2).stderr
    assert not (project.store / "sessions").exists()


def test_the_prompt_may_be_a_word_of_the_command(project):
    words = ("--stage", "work:1", "--prompt", "prompts/{stage}.md")
    told = ("{stage}-{iteration}:", "{prompt}")
    done = project.playhead("loop", "--session", "s", *words, *project.agent, *told)
    assert done.stdout.startswith("work1: work-1: Do the work.")


def test_output_of_a_program_that_is_no_agent_passes_through(project):
    words = (
        "loop",
        "--session",
        "s",
        "--stage",
        "work:2",
        "--record",
        "--record-level",
        "full",
        "--",
    )
    done = project.playhead(*words, "sh", "-c", 'echo "{not json"; echo two')
    assert done.stdout == "{not json\ntwo\n" * 2
    (kept,) = (project.run("s") / "stage-00-work/iterations/002").glob("response.*")
    assert kept.read_text() == "{not json\ntwo\n"


def test_a_command_that_is_not_there_is_an_error_of_the_iteration(project):
    done = project.playhead(
        "loop", "--session", "s", "--stage", "work", "--", "no-such-agent", code=1
    )
    assert "cannot run no-such-agent" in done.stdout


def test_what_the_command_says_on_stderr_is_said_again_in_a_replay(project):
    words = (
        "loop",
        "--session",
        "s",
        "--stage",
        "work:1",
        "--record",
        "--record-level",
        "full",
        "--",
    )
    said = project.playhead(*words, "sh", "-c", "echo oh >&2; echo fine", code=0)
    assert "\noh\n" in said.stderr
    again = project.playhead("replay", "s")
    assert "identical" in again.stderr
    assert "\noh\n" in again.stderr


def test_the_last_words_on_stderr_are_the_reason_of_a_failure(project):
    words = ("loop", "--session", "s", "--stage", "work:1", "--")
    said = project.playhead(*words, "sh", "-c", "echo no key >&2; exit 3", code=1).stderr
    assert "exit code 3: no key" in said


def test_the_promoted_test_of_a_session_runs_from_any_folder(project, tmp_path):
    project.loop(*RECORD, "full", code=1, AGENT_FAILS_AT="work2")
    project.loop("--resume")
    project.playhead("promote", "fix", "tests/")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder in (project.folder, elsewhere):
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*words, str(project.folder / "tests")],
            cwd=folder, env=project.env(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"), capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 passed" in done.stdout


IN_PYTHON = """
import os, subprocess, sys
from playhead import loop
with loop.open_session("fix", ["work:5"], level="full") as session:
    for iteration in session.iterations():
        iteration.prompt("Do the work.")
        env = {**os.environ, **iteration.environment()}
        done = subprocess.run(sys.argv[1:], input=b"x", stdout=subprocess.PIPE, env=env)
        iteration.response(done.stdout)
        print(iteration.end(exit_code=done.returncode))
"""


def test_a_session_in_python_replays_with_the_decisions_that_its_agent_wrote(project):
    (project.folder / "loop.py").write_text(IN_PYTHON)
    done = subprocess.run(
        [sys.executable, "loop.py", *project.agent[1:]],
        cwd=project.folder, env=project.env(AGENT_STOPS_AT="work2"), capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert done.stdout.count("Decision") == 2
    replayed = project.playhead("replay", "fix")
    assert "identical" in replayed.stderr
    assert replayed.stdout == done.stdout
