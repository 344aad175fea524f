"""What stands in examples/ works as it says there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

from playhead.story import tell
from playhead.tape.reader import Tape
from playhead.testing import Reply, ScriptedLLM, ToolCall

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def model():
    """The scripted model of the support agent."""
    told = tomllib.loads((EXAMPLES / "support_agent" / "script.toml").read_text())["replies"]
    replies = [
        Reply(
            text=one["text"],
            tool_calls=[ToolCall(**call) for call in one.get("tool_calls", ())],
        )
        for one in told
    ]
    with ScriptedLLM(replies) as llm:
        yield llm


@pytest.fixture
def run(tmp_path, tmp_path_factory):
    # A copy: the workspace of a run in examples/ would be the whole repository, which other tests change.
    folder = tmp_path_factory.mktemp("project") / "examples"
    shutil.copytree(EXAMPLES, folder)

    def run(*words: str, **env: str) -> str:
        given = {**os.environ, "PLAYHEAD_HOME": str(tmp_path), **env}
        done = subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, check=False, env=given,
            cwd=folder, timeout=100,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def the_run(tmp_path):
    (path,) = (tmp_path / "runs").iterdir()
    return tell(Tape(path))


def test_the_support_agent_is_recorded_as_it_is_and_replays_without_a_model(run, model, tmp_path):
    agent = [sys.executable, "support_agent/agent.py", "Where is order A-17?"]
    said = run("-m", "playhead", "record", "--", *agent, **model.environ())
    assert "Your kettle is late." in said
    totals = the_run(tmp_path).totals
    assert (totals.llm_calls, totals.lost) == (3, 0)
    model.stop()
    assert run("-m", "playhead", "replay", "last") == said


def test_the_orchestrator_s_own_events_are_on_the_tape(run, tmp_path):
    run("orchestrator.py")
    kinds = [event.kind for event in Tape(next((tmp_path / "runs").iterdir())).events()]
    assert kinds.count("task:started") == kinds.count("task:done") == 3
    assert "job:finished" in kinds


def test_the_golden_test_passes_without_a_key(run):
    run(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "golden_tests",
        "-c",
        os.devnull,
        "-p",
        "no:asyncio",
    )
