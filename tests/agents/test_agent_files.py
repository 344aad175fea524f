"""Real coding agents that change files: replays are identical with the workspace changed or deleted
meanwhile, and never touch the real one.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.unit.workspace.conftest import GIT, fingerprint

from playhead.testing import ScriptedLLM

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
VENVS = ROOT / ".venvs"
PROGRAMS = Path(__file__).with_name("programs")
PLAYHEAD = Path(sys.executable).with_name("playhead")
NPM = VENVS / "npm" / "node_modules" / ".bin"
LOCAL = 'model_providers.local={name="local",base_url="SERVER/v1",env_key="OPENAI_API_KEY",wire_api="responses"}'
EDIT = """Here.

greeting.py
```python
<<<<<<< SEARCH
{before}
=======
{after}
>>>>>>> REPLACE
```
"""
PATCH = """*** Begin Patch
*** Update File: greeting.py
@@
-print("hello")
+print("hello world")
*** Add File: notes.txt
+Greet the world.
*** End Patch
"""
SHELL_EDITS = (
    "sed -i 's/hello/hello world/' greeting.py && mkdir -p docs && mv notes.md docs/",
    "cat > docs/more.md <<'END'\nmore\nEND\ngit add -A && git commit -qm 'Greet the world'",
    "git log --format=%s; git status --short; ls docs; cat greeting.py",
)


def asks(tool: str, **arguments: str) -> dict:
    return {"text": "Working.", "tool_calls": [{"name": tool, "arguments": arguments}]}


@dataclass(frozen=True)
class CodingAgent:
    """How an agent is started, what its model says, and how it is recorded."""

    needs: Path
    command: list[str]
    script: list
    options: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)


def shell_script(tool: str, argument: str) -> list[dict]:
    calls = [asks(tool, **{argument: one, **_more(tool)}) for one in SHELL_EDITS]
    return [*calls, {"text": "It greets the world."}]


def _more(tool: str) -> dict[str, str]:
    return {"description": "edit"} if tool == "Bash" else {}


AGENTS = {
    "aider": CodingAgent(
        needs=VENVS / "aider",
        command=[
            str(VENVS / "aider" / "bin" / "aider"),
            *("--model", "openai/gpt-4o", "--edit-format", "diff", "--message", "Greet the world."),
            *("--yes-always", "--no-check-update", "--no-pretty", "--no-detect-urls"),
            *("--no-show-model-warnings", "--no-show-release-notes", "--no-analytics"),
            *("--no-gitignore", "greeting.py"),
        ],
        script=[
            {"text": EDIT.format(before='print("hello")', after='print("hello world")')},
            {"text": "Greet the world"},
        ],
        files={".aider/caches/model_prices_and_context_window.json": '{"none": {}}'},
    ),
    "mini-swe-agent": CodingAgent(
        needs=VENVS / "litellm",
        command=[str(VENVS / "litellm" / "bin" / "python"), str(PROGRAMS / "mini_swe.py")],
        script=[
            *shell_script("bash", "command")[:-1],
            asks("bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo done"),
        ],
    ),
    "claude": CodingAgent(
        needs=NPM,
        command=[str(NPM / "claude"), "-p", "--allowedTools", "Bash", "--", "Greet the world."],
        script=shell_script("Bash", "command"),
    ),
    "codex": CodingAgent(
        needs=NPM,
        command=[
            *(str(NPM / "codex"), "exec", "--skip-git-repo-check"),
            *("--sandbox", "danger-full-access", "-c", LOCAL, "-c", "model_provider=local"),
            "Greet the world.",
        ],
        script=[
            asks("exec_command", cmd=f"apply_patch <<'EOF'\n{PATCH}EOF"),
            asks("exec_command", cmd="cat greeting.py notes.txt"),
            {"text": "It greets the world."},
        ],
        options=("--shim-mounts",),
    ),
}


class Desk:
    """A repository, a home and a store for one agent."""

    def __init__(self, folder: Path, agent: CodingAgent) -> None:
        self.folder, self.agent = folder, agent
        self.work, self.home = folder / "work", folder / "home"
        self.work.mkdir()
        self.home.mkdir()
        for name, text in agent.files.items():
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(text)
        (self.work / "greeting.py").write_text('print("hello")\n')
        (self.work / "notes.md").write_text("notes\n")
        script = "git init -q . && git add -A && git commit -qm one"
        subprocess.run(["sh", "-c", script], cwd=self.work, env={**os.environ, **GIT}, check=True)

    def playhead(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        env = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            **GIT,
            "SHELL": "/bin/bash",
            "HOME": str(self.home),
            "PLAYHEAD_HOME": str(self.folder / "store"),
            "IS_SANDBOX": "1",
            "MSWEA_SILENT_STARTUP": "1",
            **environ,
        }
        cwd = self.work if self.work.is_dir() else self.folder
        return subprocess.run(
            [str(PLAYHEAD), *words], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def record(self) -> str:
        with ScriptedLLM(self.agent.script) as llm:
            words = [one.replace("SERVER", llm.url) for one in self.agent.command]
            environ = {**llm.environ(), "CODEX_API_KEY": llm.environ()["OPENAI_API_KEY"]}
            done = self.playhead("record", *self.agent.options, "--", *words, **environ)
        assert done.returncode == 0, done.stderr
        (run,) = (self.folder / "store" / "runs").iterdir()
        return run.name

    def replay(self, run: str) -> dict:
        report = self.folder / "report.json"
        done = self.playhead("replay", run, "--no-persist", "--report", str(report))
        told = json.loads(report.read_text())
        told["stderr"] = done.stderr
        return told


def changed(work: Path) -> None:
    (work / "greeting.py").write_text("something else\n")
    (work / "new.txt").write_text("new\n")
    script = "git checkout -q --orphan other && git commit -qam other && git gc -q --prune=now"
    subprocess.run(["sh", "-c", script], cwd=work, env={**os.environ, **GIT}, check=True)


@pytest.mark.parametrize("name", AGENTS)
def test_a_coding_agent_replays_with_its_workspace_changed_and_deleted(tmp_path, name):
    agent = AGENTS[name]
    if not agent.needs.exists():
        pytest.skip(f"needs {agent.needs.relative_to(ROOT)}, which `make test-agents` makes")
    desk = Desk(tmp_path, agent)
    run = desk.record()
    assert (desk.work / "greeting.py").read_text() == 'print("hello world")\n'
    meanwhile: list[Callable[[Path], object]] = [lambda _: None, changed, shutil.rmtree]
    for happens in meanwhile:
        happens(desk.work)
        before = fingerprint(desk.work)
        told = desk.replay(run)
        assert told["verdict"] == "identical", (told["stderr"], told["divergences"])
        assert told["files"]["same"] is True, told["files"]
        assert fingerprint(desk.work) == before
    assert not desk.work.exists()
