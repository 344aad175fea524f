"""Real agents in a loop: two iterations each, recorded, read from their streams, replayed without them;
and the session files that they keep, imported.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.testing import ScriptedLLM

# An agent takes seconds to start, and minutes on a busy machine.
pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
PLAYHEAD = Path(sys.executable).with_name("playhead")
NPM = ROOT / ".venvs" / "npm" / "node_modules" / ".bin"
PROVIDER = '{name="local",base_url="SERVER/v1",env_key="OPENAI_API_KEY",wire_api="responses"}'
AGENTS = {
    "claude": (
        *("-p", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Read"),
    ),
    "codex": (
        *("exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access"),
        *("-c", f"model_providers.local={PROVIDER}", "-c", "model_provider=local", "{prompt}"),
    ),
    "gemini": (
        *("--yolo", "-m", "gemini-2.5-pro", "--output-format", "stream-json", "-p", "{prompt}"),
    ),
}
SHELLS = {
    "claude": ("Bash", {"command": "ls", "description": "list"}),
    "codex": ("exec_command", {"cmd": "ls"}),
    "gemini": ("run_shell_command", {"command": "ls"}),
}


def script(tool):
    name, arguments = SHELLS[tool]
    used = {"input": 100, "output": 20}
    look = {"text": "Let me look.", "tool_calls": [{"name": name, "arguments": arguments}]}
    return [{**look, "usage": used}, {"text": "Two files.", "usage": used}] * 2


@pytest.fixture
def run(tmp_path):
    """`playhead` as a person with a home of his own types it."""
    if not NPM.exists():
        pytest.skip("needs .venvs/npm, which `make test-agents` makes")
    (tmp_path / "work").mkdir()
    (tmp_path / "home" / ".gemini").mkdir(parents=True)
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (tmp_path / "home" / ".gemini" / "settings.json").write_text(json.dumps(settings))
    (tmp_path / "work" / "prompt.md").write_text("Look at the files and count")

    def playhead(*words, environ=()):
        env = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(tmp_path / "home"),
            "PLAYHEAD_HOME": str(tmp_path / "store"),
            "IS_SANDBOX": "1",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            **dict(environ),
        }
        ended = subprocess.run(
            [str(PLAYHEAD), *words], cwd=tmp_path / "work", env=env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return ended

    return playhead


def looped(run, tool, level):
    with ScriptedLLM(script(tool)) as llm:
        environ = {**llm.environ(), "CODEX_API_KEY": llm.environ()["OPENAI_API_KEY"]}
        command = [str(NPM / tool), *(word.replace("SERVER", llm.url) for word in AGENTS[tool])]
        words = ("loop", "--session", "s", "--stage", "work:2", "--prompt", "prompt.md", "--record")
        return run(*words, "--record-level", level, "--", *command, environ=environ)


@pytest.mark.parametrize("tool", AGENTS)
def test_an_agent_in_a_loop_is_recorded_and_replayed_without_it(run, tool):
    done = looped(run, tool, "full")
    assert done.stdout == "Let me look.\nTwo files.\n" * 2
    story = json.loads(run("show", "s", "--json").stdout)
    totals = story["totals"]
    assert (totals["llm_calls"], totals["input_tokens"], totals["output_tokens"]) == (4, 400, 80)
    replayed = run("replay", "s")
    assert replayed.stdout == done.stdout
    assert "identical" in replayed.stderr


@pytest.mark.parametrize("tool", ["claude", "codex"])
def test_what_its_stream_says_is_all_that_the_standard_level_needs(run, tool):
    looped(run, tool, "standard")
    totals = json.loads(run("show", "s", "--json").stdout)["totals"]
    assert (totals["input_tokens"], totals["output_tokens"]) == (400, 80)
    # The tool has kept the sessions itself: both can be had as runs afterwards.
    imported = json.loads(run("import", tool, "--json").stdout)
    assert [(one["answers"], one["tool_calls"]) for one in imported] == [(2, 1), (2, 1)]
    shown = run("show", imported[0]["run"]).stdout
    assert "‹ Look at the files and count" in shown
    assert "› Two files." in shown
