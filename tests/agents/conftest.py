"""Real agents against a scripted model: as they are, and under `playhead record`.

Each lives in an environment of its own under `.venvs`, made by `make test-agents`.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from playhead.story import CallItem, Story, tell
from playhead.tape.reader import Tape
from playhead.testing import Reply, ScriptedLLM, ToolCall, Usage

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).with_name("programs")
PLAYHEAD = Path(sys.executable).with_name("playhead")

USAGE = Usage(input=100, output=20)


@pytest.fixture(name="reply")
def make_reply():
    return reply


def reply(text: str = "", **tools: dict) -> Reply:
    """An answer that asks for tools: `reply("Look.", price={"item": "cup"})`."""
    calls = [ToolCall(name=name, arguments=given) for name, given in tools.items()]
    return Reply(text=text, tool_calls=calls, usage=USAGE)


@pytest.fixture
def shop() -> list[Reply]:
    """Three turns of a shop agent: one tool, two tools at once, the end."""
    return [
        reply("Let me look.", price={"item": "cup"}),
        reply(price={"item": "plate"}, order={"item": "cup", "quantity": 3}),
        reply("Three cups for 12."),
    ]


@pytest.fixture
def shell() -> list[Reply]:
    """Three turns of a coding agent, whose tool is a shell."""
    return [
        reply("Let me look.", bash={"command": "echo hello big world"}),
        reply(bash={"command": "echo hello big world | wc -w"}),
        reply("Three words."),
    ]


@dataclass(frozen=True)
class Recorded:
    """One run of an agent, on tape, and what it printed without a recorder and with one."""

    story: Story
    tape: Tape
    bare: str
    printed: str
    requests: int
    cwd: Path
    environ: dict[str, str]

    def replay(self) -> str:
        """What it prints when the tape is all the world there is; the report must say identical."""
        command = [str(PLAYHEAD), "replay", str(self.tape.run)]
        ended = start(command, self.cwd, self.environ)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def calls(self, *boundaries: str) -> list[CallItem]:
        items = self.story.items.values()
        return [one for one in items if isinstance(one, CallItem) and one.boundary in boundaries]

    def tools(self) -> list[tuple]:
        """(name, arguments, result, which LLM call asked for it), each tool call once."""
        numbers = {one.ref: n for n, one in enumerate(self.calls("llm"), 1)}
        return [
            (one.name, one.request["arguments"], one.value, numbers.get(one.cause))
            for one in self.calls("tool", "mcp")
            if "arguments" in one.request
        ]

    def commands(self) -> list[tuple]:
        """(the command, its exit code, which LLM call wrote it) of the processes asked for."""
        numbers = {one.ref: n for n, one in enumerate(self.calls("llm"), 1)}
        # A tool that was derived from the conversation stands between the model and the process.
        for tool in self.calls("tool"):
            if tool.cause in numbers:
                numbers[tool.ref] = numbers[tool.cause]
        return [
            (one.facts.get("command"), one.outcome.get("exit_code"), numbers[one.cause])
            for one in self.calls("process")
            if one.cause in numbers
        ]


@dataclass(frozen=True)
class Environment:
    """A virtual environment with agents in it."""

    name: str

    @property
    def bin(self) -> Path:
        return ROOT / ".venvs" / self.name / "bin"

    def command(self, program: str, *args: str) -> list[str]:
        """A program of ours, or a command that the environment brings."""
        ours = PROGRAMS / program
        if ours.exists():
            return [str(self.bin / "python"), str(ours), *args]
        return [str(self.bin / program), *args]


@pytest.fixture
def environment():
    def find(name: str) -> Environment:
        found = Environment(name)
        if not found.bin.exists():
            pytest.skip(f"needs .venvs/{name}, which `make test-agents` makes")
        return found

    return find


@pytest.fixture
def start_playhead():
    """`start_playhead(["replay", …], folder, environment)`."""

    def run(words: list[str], cwd: Path, environ: dict[str, str]) -> subprocess.CompletedProcess:
        return start([str(PLAYHEAD), *words], cwd, environ)

    return run


@pytest.fixture
def record(environment, tmp_path):
    """`record("sdks", "anthropic_loop.py", SHELL)`: run it twice, the second time on tape."""

    def run(
        name: str,
        program: str,
        script: Sequence[Reply],
        *args: str,
        files: dict[str, str] | None = None,
        **more: str,
    ) -> Recorded:
        command = environment(name).command(program, *args)
        for place in ("bare", "taped"):
            for path, text in (files or {}).items():
                file = tmp_path / place / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        with ScriptedLLM(script) as llm:
            bare = start(command, tmp_path / "bare", llm.environ() | more)
        store = tmp_path / "store"
        recording = [str(PLAYHEAD), "record", "--store", str(store), "--quiet", "--", *command]
        with ScriptedLLM(script) as llm:
            taped = start(recording, tmp_path / "taped", llm.environ() | more)
            requests = sum(one.method == "POST" for one in llm.requests)
            environ = llm.environ() | more
        assert bare.returncode == taped.returncode == 0, bare.stderr + taped.stderr
        (path,) = (store / "runs").iterdir()
        tape = Tape(path)
        printed = bare.stdout, taped.stdout
        return Recorded(tell(tape), tape, *printed, requests, tmp_path / "taped", environ)

    return run


def start(command: list[str], cwd: Path, environ: dict[str, str]) -> subprocess.CompletedProcess:
    """In a folder and a HOME of its own: agents leave things in both."""
    home = cwd / "home"
    home.mkdir(parents=True, exist_ok=True)
    kept = {
        key: os.environ[key] for key in ("PATH", "LANG", "LD_LIBRARY_PATH") if key in os.environ
    }
    quiet = {
        "CREWAI_DISABLE_TELEMETRY": "true",
        "OTEL_SDK_DISABLED": "true",
        "MSWEA_SILENT_STARTUP": "1",
    }
    env = {**kept, "HOME": str(home), "PYTHONUTF8": "1", **quiet, **environ}
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=300
    )
