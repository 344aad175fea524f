"""Agents that are not Python, and what they start: followed by a tracer, replayed with git gone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.replay.matching.taped import TapedCall, load
from playhead.tape.reader import Tape
from playhead.testing import ScriptedLLM

# An agent takes seconds to start, and minutes on a busy machine.
pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
PLAYHEAD = Path(sys.executable).with_name("playhead")
NPM = ROOT / ".venvs" / "npm" / "node_modules" / ".bin"
SCRIPT = "git status --short; git --version"
LOCAL = 'model_providers.local={name="local",base_url="SERVER/v1",env_key="OPENAI_API_KEY",wire_api="responses"}'

# How each is started, what its shell tool and the argument of that are called.
AGENTS = {
    "claude": (["-p", "--allowedTools", "Bash", "--", "look"], "Bash", "command"),
    "codex": (
        [
            *("exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"),
            *("-c", LOCAL, "-c", "model_provider=local", "look"),
        ],
        *("exec_command", "cmd"),
    ),
    "gemini": (
        ["--yolo", "-m", "gemini-2.5-pro", "-p", "look"],
        *("run_shell_command", "command"),
    ),
}


class Shimmed:
    """A work tree, a home and a store for one agent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "home" / ".gemini").mkdir(parents=True)
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (folder / "home" / ".gemini" / "settings.json").write_text(json.dumps(settings))
        subprocess.run(["git", "init", "-q", str(folder / "work")], check=True)
        (folder / "work" / "new.txt").touch()

    def playhead(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": os.environ["PATH"],
            "SHELL": "/bin/bash",
            "HOME": str(self.folder / "home"),
            "PLAYHEAD_HOME": str(self.folder / "store"),
            "IS_SANDBOX": "1",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            **environ,
        }
        return subprocess.run(
            [str(PLAYHEAD), *words],
            cwd=self.folder / "work",
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    def calls(self) -> list[TapedCall]:
        run = min((self.folder / "store" / "runs").iterdir())
        return [call for call in load(Tape(run)).calls if call.boundary == "process"]

    def without_git(self) -> str:
        """Everything that is on PATH, but for git."""
        bare = self.folder / "bare"
        bare.mkdir()
        for folder in ("/usr/bin", "/bin"):
            for name in os.listdir(folder):
                if not name.startswith("git") and not (bare / name).exists():
                    (bare / name).symlink_to(f"{folder}/{name}")
        return str(bare)


@pytest.mark.parametrize("name", AGENTS)
def test_what_an_agent_starts_is_taped_and_served_with_git_gone(tmp_path, name):
    if not NPM.exists():
        pytest.skip("needs .venvs/npm, which `make test-agents` makes")
    words, tool, argument = AGENTS[name]
    agent = Shimmed(tmp_path)
    asks = {"text": "Let me look.", "tool_calls": [{"name": tool, "arguments": {argument: SCRIPT}}]}
    with ScriptedLLM([asks, {"text": "It is new."}]) as llm:
        command = [str(NPM / name), *(word.replace("SERVER", llm.url) for word in words)]
        environ = {**llm.environ(), "CODEX_API_KEY": llm.environ()["OPENAI_API_KEY"]}
        then = agent.playhead("record", "--", *command, **environ)
    assert then.returncode == 0, then.stderr
    assert "It is new." in then.stdout
    # The shell that runs the tool's words is the call, whatever it starts in turn.
    (shell,) = [call for call in agent.calls() if SCRIPT in call.request["argv"][-1]]
    assert shell.request["argv"][0].endswith("bash")
    now = agent.playhead("replay", "last", PATH=agent.without_git())
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
