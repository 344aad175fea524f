"""A loop of three iterations, at each level: what lies on disk, how much, and what can be done with it."""

import json
import os
import stat

import pytest

from playhead.tape.reader import Tape

TEXTS = ("context.md", "prompt.md", "response.jsonl", "text.md")
ITERATIONS = [f"stage-{place}/iterations/{number}" for place, number in
              (("00-plan", "001"), ("01-work", "001"), ("01-work", "002"))]  # fmt: skip
RECORD = ("--record", "--context", "context.md", "--record-level")


def expected(names):
    return sorted(f"{folder}/{name}" for folder in ITERATIONS for name in names)


def size_of_an_iteration(project):
    """Of the last one: what its files and its events take."""
    files = sum(path.stat().st_size for name, path in project.files().items()
                if name.startswith(ITERATIONS[2]))  # fmt: skip
    lines = b"".join(path.read_bytes() for path in project.run().glob("tape-*")).splitlines(True)
    turns = [at for at, line in enumerate(lines) if b'"kind":"turn.start"' in line]
    ends = [at for at, line in enumerate(lines) if b'"kind":"turn.end"' in line]
    return files + sum(map(len, lines[turns[-1] : ends[-1] + 1]))


def test_minimal_keeps_decision_and_timing_in_about_half_a_kilobyte(project):
    project.loop(*RECORD, "minimal")
    assert sorted(project.files()) == expected(["status.json", "timing.json"])
    assert size_of_an_iteration(project) <= 614 + len(',"reason":"all done"') * 2
    assert project.json("show", "fix")["totals"]["calls"] == 0


def test_standard_keeps_hashes_in_place_of_texts_in_about_two_kilobytes(project):
    project.loop(*RECORD, "standard", AGENT_SIZE="50000")
    hashes = [f"{name}.sha256" for name in TEXTS if name != "context.md"]
    assert sorted(project.files()) == expected(
        ["context.md", *hashes, "status.json", "timing.json"]
    )
    assert size_of_an_iteration(project) < 2_300
    everything = b"".join(path.read_bytes() for path in project.run().rglob("*") if path.is_file())
    assert b"Do the work" not in everything
    totals = project.json("show", "fix")["totals"]
    assert (totals["input_tokens"], totals["output_tokens"], totals["cost_usd"]) == (360, 90, 0.03)
    refused = project.playhead("replay", "fix", code=4)
    assert "standard" in refused.stderr


@pytest.mark.parametrize("level", ["minimal", "standard", "full"])
def test_the_reason_of_a_decision_is_kept_at_every_level_and_found(project, level):
    project.loop(*RECORD, level)
    status = json.loads(project.files()[f"{ITERATIONS[2]}/status.json"].read_text())
    assert status == {"decision": "stop", "reason": "all done"}
    assert "work 2/5 · stop: all done" in project.playhead("show", "fix").stdout
    turns = [item for item in project.json("show", "fix")["tree"] if item["type"] == "turn"]
    assert [turn["decision"] for turn in turns] == ["continue", "continue", "stop"]
    assert turns[-1]["reason"] == "all done"
    found = project.playhead("search", '"all done"', "--all", "--json").stdout
    assert '"fix"' in found


@pytest.mark.parametrize("level", ["standard", "full"])
def test_the_input_context_is_copied_and_found(project, level):
    project.loop(*RECORD, level)
    assert project.files()[f"{ITERATIONS[1]}/context.md"].read_text() == "What is known.\n"
    assert '"fix"' in project.playhead("search", '"what is known"', "--all", "--json").stdout
    (project.folder / "context.md").write_text("x" * 100_000)
    project.loop(*RECORD, level, session="long")
    kept = project.files("long")[f"{ITERATIONS[0]}/context.md"]
    assert kept.stat().st_size == 100_000


def test_full_keeps_everything_that_was_said(project):
    done = project.loop(*RECORD, "full", AGENT_SESSION="one session")
    assert done.stdout == (
        "plan1: Make a plan.\nDone.\nwork1: Do the work.\nDone.\nwork2: Do the work.\nDone.\n"
    )
    files = project.files()
    assert sorted(files) == expected([*TEXTS, "status.json", "timing.json"])
    last = {name: files[f"{ITERATIONS[2]}/{name}"].read_text() for name in (*TEXTS, "status.json")}
    assert last["prompt.md"] == "Do the work.\n"
    assert last["context.md"] == "What is known.\n"
    assert last["text.md"] == "work2: Do the work.\n\nDone."
    assert json.loads(last["response.jsonl"].splitlines()[-1])["type"] == "result"
    assert json.loads(last["status.json"]) == {"decision": "stop", "reason": "all done"}
    timing = json.loads(files[f"{ITERATIONS[2]}/timing.json"].read_text())
    assert (timing["exit_code"], sorted(timing)) == (
        0, ["duration_s", "ended_at", "exit_code", "started_at"],
    )  # fmt: skip
    manifest = json.loads((project.run() / "manifest.json").read_text())
    assert (manifest["name"], manifest["level"], manifest["tags"]) == (
        "fix", "full", {"session": "fix"},
    )  # fmt: skip
    story = project.json("show", "fix")
    # Each iteration counts, though the agent continues one session.
    assert (story["status"], story["totals"]["llm_calls"], story["totals"]["tool_calls"]) == (
        "ok",
        6,
        3,
    )
    assert story["totals"]["cost_usd"] == 0.03
    # Served from its tape, the agent gone: every iteration, its decision, its output.
    (project.folder / "context.md").unlink()
    replayed = project.playhead("replay", "fix")
    assert "identical" in replayed.stderr
    assert replayed.stdout == done.stdout
    assert project.state()["status"] == "done"
    (project.folder / "prompts" / "work.md").write_text("Do something else.\n")
    # The prompts are files of the workspace: a replay restores them, unless it is asked not to.
    assert "identical" in project.playhead("replay", "fix").stderr
    diverged = project.playhead("replay", "fix", "--in-place", code=3)
    assert "sends other input" in diverged.stderr


@pytest.mark.parametrize("level", ["standard", "full"])
def test_everything_is_for_its_owner_alone_and_hidden_from_git(project, level):
    os.makedirs(project.folder / ".git")
    store = project.folder / "tapes"
    project.loop("--record", "--record-level", level, PLAYHEAD_HOME=str(store))
    for path in store.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert (store / ".gitignore").read_text() == "*\n"


def test_nothing_is_recorded_unless_asked_for(project):
    project.loop()
    assert list((project.store / "runs").iterdir()) == []
    assert project.state()["counts"] == [1, 2]


def test_a_variable_asks_for_it_too(project):
    project.loop(PLAYHEAD_RECORD="1")
    assert Tape(project.run()).manifest.level == "standard"


def test_two_sessions_are_compared_step_by_step(project):
    project.loop("--record", "--record-level", "full")
    (project.folder / "prompts" / "work.md").write_text("Work differently.\n")
    project.loop("--record", "--record-level", "full", session="fix2")
    steps = project.json("diff", "fix", "fix2")["steps"]
    changed = {(step["kind"], step["left"]["boundary"]) for step in steps if step["kind"] != "same"}
    assert ("changed", "llm") in changed
    assert [step for step in steps if step["kind"] == "same" and step["left"]["boundary"] == "tool"]


def test_two_sessions_that_behaved_alike_are_the_same(project):
    for session in ("one", "two"):
        words = ("loop", "--session", session, "--stage", "work:2", "--record-level", "full", "--")
        project.playhead(*words, "sh", "-c", "echo done")
    # The stream of an agent has other ids in each run.
    for session in ("three", "four"):
        words = ("loop", "--session", session, "--stage", "work:1", "--record", *project.agent)
        project.playhead(*words)
    assert "same trajectory" in project.playhead("diff", "three", "four").stdout
    compared = project.playhead("diff", "one", "two").stdout
    assert "same trajectory" in compared
    assert {step["kind"] for step in project.json("diff", "one", "two")["steps"]} == {"same"}
