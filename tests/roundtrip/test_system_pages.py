"""The pages for the users of the five systems: their programs and commands run as printed.

A block whose first line is `# NAME` is a file. In a console block, a line after `$` is a command that must exit with 0,
and every line below it must be in its output; numbers, times and ids may differ. An ellipsis stands for any lines.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.testing import Reply, ScriptedLLM, ToolCall

DOCS = Path(__file__).parents[2] / "docs" / "systems"
PAGES = sorted(DOCS.glob("*.md"))
AGENT = Path(__file__).parent / "loop" / "programs" / "agent.py"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

LOOK = ToolCall(name="search", arguments={"query": "order A-17"})
AGAIN = ToolCall(name="search", arguments={"query": "order A-17 today"})
REPLIES = [
    *(Reply(text="Let me look.", tool_calls=[LOOK]), Reply(text="It is late. Sorry!")),
    *(Reply(text="Looking.", tool_calls=[AGAIN]), Reply(text="It is late.")),
]


# The part of the Anthropic SDK that the pages use. The SDK itself takes two seconds to import, in each of their
# commands; `tests/roundtrip/prompt` and `tests/roundtrip/http` record and replay it.
SDK = """
import json, os, subprocess, urllib.error, urllib.request
from types import SimpleNamespace

class Part(SimpleNamespace):
    pass

class Anthropic:
    def __init__(self):
        self.messages = self

    def create(self, **asked):
        url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
        headers = {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]}
        # The SDK asks so too, for a header.
        system = subprocess.run(["uname", "-rs"], capture_output=True, text=True).stdout.split()[0]
        headers |= {"anthropic-version": "2023-06-01", "x-stainless-os": system}
        request = urllib.request.Request(url, json.dumps(asked, default=vars).encode(), headers)
        for left in (1, 0):
            try:
                with urllib.request.urlopen(request) as answer:
                    return Part(content=[Part(**one) for one in json.load(answer)["content"]])
            except urllib.error.HTTPError as error:
                if error.code < 500 or not left:
                    raise
"""


def test_there_is_a_page_for_each_of_the_five_systems():
    assert len(PAGES) == 5
    readme = (DOCS.parents[1] / "README.md").read_text()
    for page in PAGES:
        assert page.read_text().startswith("# You have ")
        assert f"docs/systems/{page.name}" in readme


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_the_programs_and_commands_of_a_page_run_as_printed(page, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "new.md").write_text("Be rude.")
    with ScriptedLLM(REPLIES) as llm:
        env = {**environment(tmp_path), **llm.environ()}
        for language, text in BLOCK.findall(page.read_text()):
            if language == "console":
                for command, expected in commands(text):
                    check(command, expected, folder, env)
            elif text.startswith("# "):
                name, _, body = text[2:].partition("\n")
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(body)


def environment(tmp_path):
    """`playhead`, `python` and `claude` on the path; a home folder of its own."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name, words in (("playhead", "-m playhead"), ("python", ""), ("claude", str(AGENT))):
        path = bin_folder / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        path.chmod(0o755)
    # The agent takes its prompt from stdin; what it is started with is for Claude.
    claude = bin_folder / "claude"
    claude.write_text(claude.read_text().replace(' "$@"', ""))
    library = tmp_path / "library"
    library.mkdir()
    (library / "anthropic.py").write_text(SDK)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PLAYHEAD_")}
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    return {
        **kept,
        "PATH": path,
        "HOME": str(tmp_path / "home"),
        "XDG_DATA_HOME": str(tmp_path / "home" / ".local" / "share"),
        "NO_COLOR": "1",
        "PYTHONWARNINGS": "ignore",
        "PYTHONPATH": str(library),
        "AGENT_STOPS_AT": "work2",
        "AGENT_REASON": "nothing left",
    }


def commands(block):
    """Each command of a console block, with the lines that are printed below it."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line != "…":
            found[-1][1].append(line)
    return found


def check(command, expected, folder, env):
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=False,
        timeout=200, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert done.returncode == 0, f"$ {command}\n{printed}"
    lines = [volatile(line) for line in printed.splitlines()]
    for line in expected:
        assert volatile(line) in lines, f"$ {command}\nexpected: {line}\n{printed}"


def volatile(line):
    """The line with ids, numbers, units of time and spaces made equal."""
    line = re.sub(r"\d{8}-\d{6}-\w{4}", "ID", line)
    line = re.sub(r"\d[\d.,]*k?( ?(?:µs|ms|s|m|min|h)\b)?", "0", line)
    return re.sub(r"\s+", " ", line).strip()


def test_a_page_that_is_wrong_is_noticed(tmp_path):
    env = environment(tmp_path)
    with pytest.raises(AssertionError):
        check("echo one", ["two"], tmp_path, env)
    with pytest.raises(AssertionError):
        check("exit 3", [], tmp_path, env)
    assert shutil.which("bash")
