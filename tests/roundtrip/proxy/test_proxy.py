"""`playhead record` and `replay` of programs that cannot be hooked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.story import CallItem, tell
from playhead.tape.reader import Tape
from playhead.testing import ScriptedLLM

HERE = Path(__file__).parent
NATIVE = [sys.executable, "-S", str(HERE / "native.py")]


@pytest.fixture
def playhead(tmp_path):
    def run(
        *words: str, cwd: Path = tmp_path, joined: bool = False, **env: str
    ) -> subprocess.CompletedProcess:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        command = [sys.executable, "-m", "playhead", *words]
        home = {"HOME": str(tmp_path), "PLAYHEAD_HOME": str(tmp_path / "store")}
        return subprocess.run(
            command,
            cwd=cwd,
            env={**kept, **home, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if joined else subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def calls(tmp_path):
    def found() -> list[CallItem]:
        path = min((tmp_path / "store" / "runs").iterdir())
        return [one for one in tell(Tape(path)).items.values() if isinstance(one, CallItem)]

    return found


def test_a_program_in_any_language_is_recorded_and_replayed_without_its_server(playhead, calls):
    script = ["One.", {"error": 529}, "Three."]
    with ScriptedLLM(script) as llm:
        place = f"127.0.0.1:{llm.port}"
        words = ["Hello?", "Overloaded?", "Again?"]
        then = playhead("record", "--", *NATIVE, *words, **llm.environ())
        assert [one.headers["host"] for one in llm.requests] == [place] * 4
    assert then.stdout == "One.\n529\nThree.\n"
    assert "3 LLM" in then.stderr
    probe, *asked = calls()
    assert probe.facts["side"] == "probe"
    assert [one.boundary for one in asked] == ["llm"] * 3
    assert "(side: probe)" in playhead("show", "last").stdout
    assert asked[0].request["url"].startswith(f"http://{place}/")
    now = playhead("replay", "last", "--json")
    assert (now.returncode, now.stdout) == (0, then.stdout)
    report = json.loads(now.stderr.partition("\n")[2])  # after the program's own line
    assert (report["verdict"], report["coverage"]["llm"]["normalised"]) == ("identical", 3)
    # As with `2>&1 | cat`: a note on stderr, which differs in each run, does not count there either.
    joined = playhead("replay", "last", joined=True)
    assert joined.returncode == 0, joined.stdout
    assert set(then.stdout.splitlines()) < set(joined.stdout.splitlines())
    other = playhead("replay", "last", "--", *NATIVE, "Hello?", "Something else?")
    assert other.returncode == 3
    assert "Something else?" in other.stderr


def test_output_that_was_recorded_in_one_pipe_is_replayed_with_two(playhead):
    with ScriptedLLM(["One."]) as llm:
        words = ["record", "--quiet", "--", *NATIVE, "Hello?"]
        then = playhead(*words, joined=True, NOTE="the same", **llm.environ())
    assert then.stdout == "the same\nOne.\n"
    now = playhead("replay", "last", NOTE="the same")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_a_hooked_python_is_taped_once_and_its_native_child_below_the_call(playhead, calls):
    with ScriptedLLM(["To the parent.", "To the child."]) as llm:
        program = [sys.executable, str(HERE / "parent.py")]
        then = playhead("record", "--", *program, **llm.environ())
        assert [one.method for one in llm.requests] == ["POST", "HEAD", "POST"]
        assert then.stdout == f"To the parent.\nTo the child.\n{llm.url}\n"
    by_parent, process, _, by_child = calls()
    assert [one.boundary for one in (by_parent, process, by_child)] == ["llm", "process", "llm"]
    assert by_parent.facts["library"] != "proxy"
    assert by_child.facts["library"] == "proxy"
    assert by_child.parent == process.ref
    now = playhead("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout)


def test_without_a_proxy_addresses_are_left_alone(playhead, calls):
    with ScriptedLLM(["Hello."]) as llm:
        shell = 'echo "$ANTHROPIC_BASE_URL"'
        told = playhead("record", "--no-proxy", "--quiet", "--", "sh", "-c", shell, **llm.environ())
        assert told.stdout.strip() == llm.url
        led = playhead("record", "--quiet", "--", "sh", "-c", shell, **llm.environ())
        assert led.stdout.strip() not in ("", llm.url)


def test_a_run_moved_to_another_folder_still_matches(playhead, tmp_path):
    first, second = tmp_path / "one", tmp_path / "a" / "deeper-one"
    first.mkdir()
    with ScriptedLLM(["Hello."]) as llm:
        playhead("record", "--", *NATIVE, "Hello?", cwd=first, **llm.environ())
    second.mkdir(parents=True)
    first.rmdir()
    run = min((tmp_path / "store" / "runs").iterdir()).name
    assert playhead("replay", run, cwd=second).returncode == 0


def test_whatever_becomes_of_the_launcher_the_command_keeps_its_models(tmp_path):
    answers = tmp_path / "answers"
    program = [sys.executable, "-S", str(HERE / "patient.py"), str(answers)]
    with ScriptedLLM(["One.", "Two."]) as llm:
        launcher = subprocess.Popen(
            [sys.executable, "-m", "playhead", "record", "--quiet", "--no-shims", "--", *program],
            env={**os.environ, "PLAYHEAD_HOME": str(tmp_path / "store"), **llm.environ()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        llm.wait_for_requests(1)
        launcher.kill()
        launcher.wait()
        launcher.stdin.write(b"go on\n\n")
        launcher.stdin.close()
        llm.wait_for_requests(2)
        launcher.stdout.read()  # ends when the command has left its output
        launcher.stdout.close()
    assert answers.read_text() == "One.\nTwo.\n"


def test_the_proxy_alone_records_and_replays_what_others_start(playhead, tmp_path):
    env = {**os.environ, "PLAYHEAD_HOME": str(tmp_path / "store")}

    def served(*words: str, **more: str) -> tuple[str, int]:
        command = [sys.executable, "-m", "playhead", "proxy", "--json", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env={**env, **more}, **pipes) as proxy:
            environ = json.loads(proxy.stdout.readline())["environ"]
            asked = subprocess.run(
                [*NATIVE, "Hello?"],
                env={**env, **environ},
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
            )
            proxy.terminate()
            proxy.communicate(timeout=30)
            return asked.stdout, proxy.returncode

    with ScriptedLLM(["Hello."]) as llm:
        assert served("--record", **llm.environ()) == ("Hello.\n", 0)
    (run,) = (tmp_path / "store" / "runs").iterdir()
    assert served("--replay", run.name) == ("Hello.\n", 0)
    assert playhead("proxy").returncode == 2
