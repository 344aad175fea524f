"""`playhead record`, then `playhead replay` with the world gone: the same bytes, or the right words."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests import warm_start

from playhead.llm.llm_script import Reply
from playhead.tape.layout import FORMAT_VERSION
from playhead.testing import ScriptedLLM

PLAYHEAD = [sys.executable, "-m", "playhead"]

AGENT = """
import datetime, json, os, random, subprocess, sys, tempfile, time, urllib.request, uuid
question = sys.argv[1] if len(sys.argv) > 1 else "Where is order A-17?"
print(datetime.datetime.now(), time.time(), uuid.uuid4(), random.random(), tempfile.mktemp())
print(subprocess.run(["sh", "-c", "echo $$; date +%N"], capture_output=True, text=True).stdout)
body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 99, "stream": True,
                   "messages": [{"role": "user", "content": question}]}).encode()
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body,
                                 {"content-type": "application/json"})
with urllib.request.urlopen(request) as response:
    for line in response:
        if line.startswith(b"data:"):
            print(line.decode().rstrip(), flush=True)
time.sleep(float(os.environ.get("NAP", "0")))
"""


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    path = tmp_path / "agent.py"
    path.write_text(AGENT)
    return path


@pytest.fixture
def play(tmp_path: Path):
    """Run `playhead …` in a folder and a store of its own."""

    def run(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        store = str(tmp_path / "store")
        verb, *rest = words
        argv = [*PLAYHEAD, verb, "--store", store, *rest]
        return warm_start.run(
            argv, cwd=tmp_path, env=env, capture_output=True, check=False, timeout=100
        )

    return run


def recorded(
    play, agent: Path, *options: str, replies=None, **env: str
) -> subprocess.CompletedProcess[bytes]:
    with ScriptedLLM(replies or [Reply(text="It shipped on Tuesday.", chunks=5)]) as llm:
        return play(
            "record", "--no-seal", *options, "--", sys.executable, str(agent),
            env={**os.environ, **llm.environ(), **env},
        )  # fmt: skip


def segments(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "store").glob("runs/*/tape-*.jsonl"))


def test_a_run_replays_offline_to_the_same_bytes(play, agent, tmp_path):
    then = recorded(play, agent, NAP="0.3")
    assert then.returncode == 0, then.stderr
    now = play("replay", "last", "--report", str(tmp_path / "r.json"))
    assert now.returncode == 0, now.stderr.decode()
    assert now.stdout == then.stdout
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["verdict"] == "identical"
    assert report["output_same"] is True
    assert report["exit_code"] == {"recorded": 0, "replayed": 0}
    assert report["coverage"]["llm"]["exact"] == 1
    assert report["first_divergence"] is None
    assert set(report["coverage"]["llm"]) == {
        "exact",
        "normalised",
        "fuzzy",
        "live",
        "blocked",
        "missed",
        "unused",
    }


def test_one_word_changed_in_a_prompt_is_reported_at_its_step_with_exit_3(play, agent, tmp_path):
    recorded(play, agent)
    now = play(
        "replay",
        "last",
        "--report",
        str(tmp_path / "r.json"),
        "--",
        sys.executable,
        str(agent),
        "Where is order B-1?",
    )
    assert now.returncode == 3
    first = json.loads((tmp_path / "r.json").read_text())["first_divergence"]
    assert first["kind"] == "missed"
    assert first["boundary"] == "llm"
    assert first["nearest"]["differences"][0]["path"] == "body.messages[0].content"
    told = now.stderr.decode()
    assert "Where is order A-17?" in told
    assert "agent.py:" in first["at"]
    # The traceback before the report has no frames of libraries.
    assert 'agent.py", line' in told
    assert "site-packages" not in told
    assert "taped_mode.py" not in told


def test_a_changed_word_in_output_that_the_tape_keeps_in_a_blob_is_found(play, tmp_path):
    program = tmp_path / "large.py"
    # A control character takes six bytes on the tape, so each piece of this output goes into a blob.
    program.write_text("import sys\nprint('\\1' * 60_000, sys.argv[1], '\\1' * 60_000)\n")
    play("record", "--no-seal", "--", sys.executable, str(program), "left")
    assert list((tmp_path / "store").glob("runs/*/blobs/*/*"))
    assert play("replay", "last").returncode == 0
    assert play("replay", "last", "--", sys.executable, str(program), "lost").returncode == 3


def test_a_tape_with_one_altered_byte_is_not_replayed(play, agent, tmp_path):
    recorded(play, agent)
    path = next(path for path in segments(tmp_path) if b"text_delta" in path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"text_delta", b"text_delto", 1))
    now = play("replay", "last")
    assert now.returncode == 4
    assert b"damaged" in now.stderr
    assert b"line" in now.stderr


def test_a_sealed_run_replays(play, agent):
    then = recorded(play, agent)
    assert play("seal", "last").returncode == 0
    now = play("replay", "last")
    assert now.returncode == 0, now.stderr
    assert now.stdout == then.stdout


def test_a_run_below_level_full_is_refused_with_the_reason(play, agent):
    recorded(play, agent, "--level", "standard")
    now = play("replay", "last")
    assert now.returncode == 4
    assert b"level 'standard'" in now.stderr


def test_a_tape_from_the_future_is_refused_with_the_reason(play, agent, tmp_path):
    recorded(play, agent)
    manifest = next((tmp_path / "store").glob("runs/*/manifest.json"))
    told = manifest.read_text()
    manifest.write_text(told.replace(f'"format": {FORMAT_VERSION}', '"format": 99', 1))
    now = play("replay", "last")
    assert now.returncode == 4
    assert b"format 99" in now.stderr


def test_a_run_that_was_killed_in_a_stream_replays_to_the_same_torn_stream(play, agent, tmp_path):
    stalls = [Reply(text="One two three four five six.", chunks=6, chunk_delay=0.2)]
    with ScriptedLLM(stalls) as llm:
        process = subprocess.Popen(
            [*PLAYHEAD, "record", "--store", str(tmp_path / "store"), "--", sys.executable, str(agent)],
            cwd=tmp_path, env={**os.environ, **llm.environ()}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        seen = b""
        while b"two" not in seen:
            seen += process.stdout.readline()
        children = subprocess.run(
            ["pgrep", "-f", str(agent)], capture_output=True, text=True, check=True
        ).stdout
        for pid in children.split():
            if (
                Path(f"/proc/{pid}/cmdline")
                .read_bytes()
                .startswith(sys.executable.encode() + b"\0" + bytes(agent))
            ):
                os.kill(int(pid), signal.SIGKILL)
        rest, _ = process.communicate()
        seen += rest
        assert process.returncode == 128 + signal.SIGKILL
    now = play("replay", "last", "--report", str(tmp_path / "r.json"))
    assert now.stdout == seen, now.stderr.decode()
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["verdict"] == "identical", report["divergences"]
    assert report["exit_code"] == {"recorded": -9, "replayed": -9}


def test_nothing_reaches_the_network_or_runs_when_the_code_asks_for_something_new(
    play, agent, tmp_path
):
    recorded(play, agent)
    mark = tmp_path / "mark"
    rogue = tmp_path / "rogue.py"
    with ScriptedLLM([Reply(text="live!")]) as llm:
        rogue.write_text(
            f"import socket, subprocess\n"
            f"try: subprocess.run(['touch', {str(mark)!r}])\n"
            f"except Exception as error: print(type(error).__name__)\n"
            f"try: socket.create_connection(('127.0.0.1', {llm.port}))\n"
            f"except Exception as error: print(type(error).__name__)\n"
        )
        now = play("replay", "last", "--", sys.executable, str(rogue))
        assert llm.requests == []
    assert now.returncode == 3
    assert not mark.exists()
    assert now.stdout.decode().splitlines() == ["Divergence", "Divergence"]


def test_a_replay_is_not_the_last_run(play, agent):
    recorded(play, agent)
    assert play("replay", "last").returncode == 0
    assert play("replay", "last").returncode == 0


def test_promote_writes_a_test_that_passes(play, agent, tmp_path):
    recorded(play, agent, "--name", "where is it")
    folder = tmp_path / "tests"
    made = play("promote", "last", str(folder), "--fixtures")
    assert made.returncode == 0, made.stderr
    assert (folder / "tapes" / "where_is_it.tape.jsonl").exists()
    assert (
        json.loads((folder / "fixtures/where_is_it/llm_responses.json").read_text())[0]["text"]
        == "It shipped on Tuesday."
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


def test_promote_does_not_write_over_a_test(play, agent, tmp_path):
    recorded(play, agent, "--name", "x")
    assert play("promote", "last", str(tmp_path / "tests")).returncode == 0
    again = play("promote", "last", str(tmp_path / "tests"))
    assert again.returncode == 2
    assert b"exists already" in again.stderr
