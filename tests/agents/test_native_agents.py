"""Agents that are not Python, from npm: recorded by the proxy, and replayed with the server gone.

Each works through several turns with tools, meets one overloaded server and one stream that breaks.
"""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from playhead.story import CallItem, Story, tell
from playhead.tape.reader import Tape
from playhead.testing import ScriptedLLM

# An agent takes seconds to start, and minutes on a busy machine.
pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).with_name("programs")
PLAYHEAD = Path(sys.executable).with_name("playhead")
NPM = ROOT / ".venvs" / "npm" / "node_modules" / ".bin"
COST = {"input": 100, "output": 20}


def says(text: str, *calls: tuple[str, dict], **more: object) -> dict:
    tools = [{"name": name, "arguments": given} for name, given in calls]
    return {"text": text, "tool_calls": tools, "usage": COST, **more}


OVERLOADED = {"error": {"status": 529, "retry_after": 0.1}}
BUSY = {"error": {"status": 503, "retry_after": 0.1}}
BROKEN = says("There are two files here, I think, but", cut={"after": 4}, chunk_delay=0.02)


@dataclass(frozen=True)
class Native:
    """A folder, a home and a store for one agent."""

    folder: Path

    def playhead(
        self, *words: str, environ: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess:
        env = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(self.folder / "home"),
            "PLAYHEAD_HOME": str(self.folder / "store"),
            "IS_SANDBOX": "1",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            **(environ or {}),
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

    def record(
        self, script: list, command: list[str], code: int = 0, **more: str
    ) -> subprocess.CompletedProcess:
        with ScriptedLLM(script) as llm:
            environ = {**llm.environ(), "CODEX_API_KEY": llm.environ()["OPENAI_API_KEY"], **more}
            words = [word.replace("SERVER", llm.url) for word in command]
            ended = self.playhead("record", "--", *words, environ=environ)
        assert ended.returncode == code, ended.stderr
        return ended

    def replay(self) -> tuple[str, dict]:
        """What it prints, and the report; the server is gone by now."""
        ended = self.playhead("replay", self.run.name, "--report", "../report.json")
        report = json.loads((self.folder / "report.json").read_text())
        assert ended.returncode == 0, (ended.stderr, report["divergences"])
        return ended.stdout, report

    @property
    def run(self) -> Path:
        return min((self.folder / "store" / "runs").iterdir())

    @property
    def story(self) -> Story:
        return tell(Tape(self.run))

    def answers(self) -> list[tuple[str, int | None]]:
        """(how each LLM call ended, its tokens), side traffic apart."""
        calls = [one for one in self.story.items.values() if isinstance(one, CallItem)]
        return [
            (one.outcome.get("how"), one.head.get("status") if one.head else None)
            for one in calls
            if one.boundary == "llm" and not one.facts.get("side")
        ]


@pytest.fixture
def native(tmp_path):
    if not NPM.exists():
        pytest.skip("needs .venvs/npm, which `make test-agents` makes")
    for name in ("work", "home/.gemini"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "work" / "a.txt").write_text("one\n")
    (tmp_path / "work" / "b.txt").write_text("two\n")
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (tmp_path / "home" / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return Native(tmp_path)


CLAUDE = [str(NPM / "claude"), "-p", "--allowedTools", "Bash,Read,Task"]


@pytest.mark.parametrize("output", ["text", "stream-json"])
def test_claude_code_comes_to_the_same_end(native, output):
    script = [
        says("Let me look.", ("Bash", {"command": "echo hello; ls", "description": "list"})),
        OVERLOADED,
        says(
            "Counting now.",
            ("Bash", {"command": "ls | wc -l", "description": "count"}),
            ("Read", {"file_path": str(native.folder / "work" / "a.txt")}),
        ),
        BROKEN,
        says("Two files."),
    ]
    style = ["--output-format", output, *(["--verbose"] if output == "stream-json" else [])]
    then = native.record(script, [*CLAUDE, *style, "--", "How many files?"])
    assert "Two files." in then.stdout
    assert native.answers() == [
        ("returned", 200),
        ("returned", 529),
        ("returned", 200),
        ("cut", 200),
        ("returned", 200),
    ]
    assert native.story.totals.cost_usd > 0
    printed, report = native.replay()
    assert "Two files." in printed
    assert report["coverage"]["llm"]["normalised"] + report["coverage"]["llm"]["exact"] == 5


def test_two_sub_agents_of_claude_code_are_told_apart_by_what_they_say(native):
    def helper(way: str) -> tuple[str, dict]:
        prompt = f"Go {way} please"
        return "Task", {"description": way, "prompt": prompt, "subagent_type": "general-purpose"}

    def walks(way: str, weather: str, wait: str) -> list[dict]:
        look = ("Bash", {"command": f"{wait}echo {way}", "description": way})
        return [
            says(f"{way}.", look, when={"conversation": f"Go {way} please", "turn": 1}),
            says(weather, when={"contains": way, "turn": 2}),
        ]

    script = [
        says("Two helpers.", helper("north"), helper("south"), when={"contains": "Ask two"}),
        *walks("north", "It is cold.", "sleep 1; "),
        *walks("south", "It is warm.", ""),
        says("Cold and warm.", repeat="forever"),
    ]
    then = native.record(script, [*CLAUDE, "--", "Ask two helpers"])
    assert "Cold and warm." in then.stdout
    printed, report = native.replay()
    assert printed == then.stdout
    assert report["coverage"]["llm"]["missed"] == 0


CODEX = [str(NPM / "codex"), "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"]
LOCAL = 'model_providers.local={name="local",base_url="SERVER/v1",env_key="OPENAI_API_KEY",wire_api="responses"}'
CODEX_SCRIPT = [
    says("Let me look.", ("exec_command", {"cmd": "echo hello; ls"})),
    BUSY,
    says(
        "Counting now.",
        ("exec_command", {"cmd": "ls | wc -l"}),
        ("exec_command", {"cmd": "cat a.txt"}),
    ),
    BROKEN,
    says("Two files."),
]


@pytest.mark.parametrize(
    ("switch", "calls"),
    [
        (["-c", LOCAL, "-c", "model_provider=local"], 5),
        (["-c", 'openai_base_url="SERVER/v1"'], 3),
    ],
    ids=["http", "websocket"],
)
def test_codex_comes_to_the_same_end(native, switch, calls):
    then = native.record(CODEX_SCRIPT, [*CODEX, *switch, "How many files?"])
    assert then.stdout == "Two files.\n"
    assert len(native.answers()) == calls
    assert (native.story.totals.tokens or 0) >= 3 * sum(COST.values())
    printed, report = native.replay()
    assert printed == then.stdout
    coverage = report["coverage"]["llm"]
    assert coverage["normalised"] + coverage["exact"] == calls


@pytest.mark.parametrize(
    ("last", "code"),
    [([says("Two files.")], 0), ([BROKEN], 1)],
    ids=["whole", "broken"],  # Gemini CLI does not ask again when a stream breaks
)
def test_gemini_cli_comes_to_the_same_end(native, last, code):
    script = [
        says("Let me look.", ("run_shell_command", {"command": "echo hello; ls"})),
        BUSY,
        says(
            "Counting now.",
            ("run_shell_command", {"command": "ls | wc -l"}),
            ("read_file", {"file_path": "a.txt"}),
        ),
        *last,
    ]
    gemini = [str(NPM / "gemini"), "--yolo", "-m", "gemini-2.5-pro", "-p", "How many files?"]
    then = native.record(script, gemini, code)
    assert [status for _, status in native.answers()] == [200, 503, 200, 200]
    printed, report = native.replay()
    assert printed == then.stdout
    assert report["exit_code"] == {"recorded": code, "replayed": code}
    coverage = report["coverage"]["llm"]
    assert coverage["normalised"] + coverage["exact"] == 4


def test_claude_code_below_a_python_is_recorded_below_the_call_that_started_it(native, environment):
    def sells(text: str, **tools: dict) -> dict:
        return says(text, *((f"mcp__shop__{name}", given) for name, given in tools.items()))

    script = [
        says("A title", when={"conversation": "naming a coding session"}, repeat="forever"),
        sells("Let me look.", price={"item": "cup"}),
        sells("", price={"item": "plate"}, order={"item": "cup", "quantity": 3}),
        sells("Three cups for 12."),
    ]
    python = str(environment("claude").bin / "python")
    program = [python, str(PROGRAMS / "claude_sdk_app.py")]
    then = native.record(script, program, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="")
    assert "Three cups for 12." in then.stdout
    items = [one for one in native.story.items.values() if isinstance(one, CallItem)]
    (child,) = [one for one in items if one.boundary == "process"]
    asked = [one for one in items if one.boundary == "llm"]
    assert {one.parent for one in asked} == {child.ref}
    assert len([one for one in asked if not one.facts.get("side")]) == 3
    printed, _ = native.replay()
    assert printed == then.stdout


LOOKS = "date +%N; python3 -c 'import random; print(random.random())'; make -v | head -1 > out.txt & wait; ls"
# The agent's words, and what its shell tool and the argument of that are called.
STARTED = {
    "claude": (["-p", "--allowedTools", "Bash", "--", "look"], "Bash", "command"),
    "codex": (
        ["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "look"],
        *("exec_command", "cmd"),
    ),
    "gemini": (
        ["--yolo", "-m", "gemini-2.5-pro", "-p", "look"],
        *("run_shell_command", "command"),
    ),
}


def _settings(native: Native, name: str, url: str) -> None:
    """Name the server in the file that the agent reads."""
    home = native.folder / "home"
    if name == "claude":
        (home / ".claude").mkdir()
        text = json.dumps({"env": {"ANTHROPIC_BASE_URL": url}})
        (home / ".claude" / "settings.json").write_text(text)
    elif name == "gemini":
        (home / ".gemini" / ".env").write_text(f"GOOGLE_GEMINI_BASE_URL={url}\n")
    else:
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text(
            'model_provider = "local"\n[model_providers.local]\nname = "local"\n'
            f'base_url = "{url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
        )


@pytest.mark.parametrize("way", ["wrapper", "settings"])
@pytest.mark.parametrize("name", STARTED)
def test_an_agent_is_recorded_wherever_its_address_comes_from(native, name, way):
    words, tool, argument = STARTED[name]
    script = [says("Let me look.", (tool, {argument: LOOKS})), says("Two files.")]
    command = [str(NPM / name), *words]
    with ScriptedLLM(script) as llm:
        environ = {**llm.environ(), "CODEX_API_KEY": llm.environ()["OPENAI_API_KEY"]}
        urls = {key: value for key, value in environ.items() if value.startswith("http")}
        if way == "settings" or name == "codex":  # which looks at no variable
            _settings(native, name, llm.url)
        if way == "wrapper":
            exports = "".join(f"export {key}={value}\n" for key, value in urls.items())
            line = f"timeout 100 {shlex.join(command)}\necho done\n"
            (native.folder / "run.sh").write_text(exports + line)
            command = ["bash", str(native.folder / "run.sh")]
        keys = {key: value for key, value in environ.items() if key not in urls}
        then = native.playhead("record", "--", *command, environ=keys)
    assert then.returncode == 0, then.stderr
    assert "Two files." in then.stdout
    assert "partial" not in then.stderr
    assert [status for _, status in native.answers()] == [200, 200]
    printed, _ = native.replay()
    assert printed == then.stdout


TITLE = says("A title", when={"conversation": "title"}, repeat="forever")


def _qwen_settings(home: Path, url: str, key: str) -> None:
    auth = {"selectedType": "openai", "apiKey": key, "baseUrl": f"{url}/v1"}
    (home / ".qwen").mkdir()
    settings = {"security": {"auth": auth}, "model": {"name": "gpt-4o"}}
    (home / ".qwen" / "settings.json").write_text(json.dumps(settings))


def _opencode_settings(home: Path, url: str, key: str) -> None:
    options = {"baseURL": f"{url}/v1", "apiKey": key}
    local = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m1": {}}}
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    settings = {"autoupdate": False, "share": "disabled", "provider": {"local": local}}
    (folder / "opencode.json").write_text(json.dumps(settings))


# Qwen Code runs its tools on a terminal, and OpenCode asks for a title beside its work.
NAMED_IN_FILES = {
    "qwen": (
        ["--yolo", "--auth-type", "openai", "-m", "gpt-4o", "-p", "look"],
        *("run_shell_command", {"command": LOOKS, "is_background": False}, _qwen_settings),
    ),
    "opencode": (
        ["run", "-m", "local/m1", "look"],
        *("bash", {"command": LOOKS, "description": "look"}, _opencode_settings),
    ),
}


@pytest.mark.parametrize("name", NAMED_IN_FILES)
def test_an_agent_of_which_only_a_file_knows_the_address_is_recorded(native, name):
    words, tool, arguments, write_settings = NAMED_IN_FILES[name]
    script = [TITLE, says("Let me look.", (tool, arguments)), says("Two files.")]
    with ScriptedLLM(script) as llm:
        keys = {key: one for key, one in llm.environ().items() if not one.startswith("http")}
        write_settings(native.folder / "home", llm.url, keys["OPENAI_API_KEY"])
        keys |= {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        then = native.playhead("record", "--", str(NPM / name), *words, environ=keys)
    assert then.returncode == 0, then.stderr
    assert "Two files." in then.stdout
    assert "partial" not in then.stderr
    ended = native.playhead("replay", native.run.name, environ=keys)
    assert (ended.returncode, ended.stdout) == (0, then.stdout), ended.stderr


EDITS = {
    "claude": ("Edit", {"old_string": "uno", "new_string": "eins"}),
    "gemini": ("replace", {"old_string": "uno", "new_string": "eins", "instruction": "edit"}),
}
READS = {"claude": "Read", "gemini": "read_file"}


@pytest.mark.parametrize("name", EDITS)
def test_an_agent_that_edits_files_in_front_of_tee_reads_what_it_read_then(native, name):
    words, tool, argument = STARTED[name]
    words = [word.replace("Bash", "Bash,Read,Edit") for word in words]
    path = {"file_path": str(native.folder / "work" / "a.txt")}
    edit, arguments = EDITS[name]
    script = [
        says("Changing.", (tool, {argument: "sed -i s/one/uno/ a.txt"})),
        says("Reading.", (READS[name], path)),
        says("Editing.", (edit, {**path, **arguments})),
        says("Two files."),
    ]
    line = f"{shlex.join([str(NPM / name), *words])} 2>&1 | tee ../log.txt"
    then = native.record(script, ["bash", "-c", line])
    assert "Two files." in then.stdout
    native.replay()
