"""`playhead scripted-llm`: prints where it is, serves, and ends on an interrupt."""

import json
import shlex
import signal
import subprocess
import sys

import httpx2
import pytest
from click.testing import CliRunner

from playhead.cli.replaying.scripted_llm_command import scripted_llm
from playhead.errors import UsageError
from playhead.testing import ScriptedLLM, ScriptError

RUN = "from playhead.cli.replaying.scripted_llm_command import scripted_llm; scripted_llm()"
ASK = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.json"
    path.write_text('["Hello."]')
    return str(path)


@pytest.fixture
def running(script):
    started = []

    def start(*options):
        argv = [sys.executable, "-c", RUN, script, *options]
        started.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_it_serves_the_script_and_ends_quietly_on_an_interrupt(running):
    process = running("--json", "--seed", "3")
    told = json.loads(process.stdout.readline())
    assert told["pid"] == process.pid
    answer = httpx2.post(f"{told['url']}/v1/messages", json=ASK)
    assert answer.json()["content"][0]["text"] == "Hello."
    assert told["environ"]["ANTHROPIC_BASE_URL"] == told["url"]
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0


def test_it_prints_exports_that_a_shell_can_read(running):
    process = running()
    first = process.stdout.readline()
    url = next(word for word in first.split() if word.startswith("http")).rstrip(";")
    export = shlex.split(process.stdout.readline())
    assert export == ["export", f"ANTHROPIC_BASE_URL={url}"]


def test_a_port_that_is_taken_is_a_mistake_with_advice(script):
    with ScriptedLLM([]) as other:
        result = CliRunner().invoke(scripted_llm, [script, "--port", str(other.port)])
    assert isinstance(result.exception, UsageError)
    assert "Omit --port" in str(result.exception)


def test_a_script_that_is_wrong_is_refused_before_anything_is_served(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('[[replies]]\ntxet = "x"')
    result = CliRunner().invoke(scripted_llm, [str(path)])
    assert isinstance(result.exception, ScriptError)


def test_help_shows_a_script():
    result = CliRunner().invoke(scripted_llm, ["--help"])
    assert "[[replies]]" in result.output
