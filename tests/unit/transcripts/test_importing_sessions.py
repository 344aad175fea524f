"""Session files as the tools keep them become runs that read like any other."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from playhead.cli import cli
from playhead.errors import UsageError
from playhead.story import tell
from playhead.tape.care.verify import verify
from playhead.tape.reader import Tape
from playhead.transcripts.importing_sessions import import_session
from playhead.transcripts.session_files import sources

SAID = Path(__file__).parent / "said"
CLAUDE = SAID / "projects"
CODEX = SAID / "sessions"


def only(tool, root, tmp_path, **more):
    (source,) = sources(tool, root)
    (tmp_path / "runs").mkdir(exist_ok=True)
    return import_session(tool, source, tmp_path, **more)


def test_a_claude_session_with_its_sub_agents(tmp_path):
    done = only("claude", CLAUDE, tmp_path)
    assert (done.prompt, done.answers, done.tools) == ("Ask two helpers", 8, 4)
    assert done.run.name.startswith("20261115-141656-")
    tape = Tape(done.run)
    assert tape.manifest.tags["imported"] == "claude"
    assert (tape.manifest.status, tape.manifest.cwd) == ("ok", "/srv/shop")
    story = tell(tape)
    assert story.totals.tokens == 77_211
    assert story.totals.cost_usd > 0
    names = {call.ref: call for call in story.calls()}
    below = [call for call in names.values() if call.lane != "main"]
    assert {names[call.parent].request["arguments"]["description"] for call in below} == {
        "north",
        "south",
    }
    assert [call.llm[0].response.text for call in story.calls() if call.llm][
        -1
    ] == "Cold and warm, indeed."
    assert verify(done.run).damages == []


def test_a_codex_session_with_its_usage_and_model(tmp_path):
    done = only("codex", CODEX, tmp_path)
    story = tell(Tape(done.run))
    assert [call.name for call in story.calls() if call.boundary == "tool"] == ["exec_command"] * 3
    first = story.calls()[0].llm[0]
    assert first.request.messages[-1].text == "Look at the files and count"
    assert (first.response.usage.input_tokens, first.response.usage.output_tokens) == (100, 20)
    (turn,) = story.turns()
    assert turn.input == "Look at the files and count"
    assert verify(done.run).damages == []


def test_a_session_is_imported_once_and_again_when_it_has_grown(tmp_path):
    folder = tmp_path / "kept"
    shutil.copytree(CODEX, folder)
    (source,) = sources("codex", folder)
    first = only("codex", folder, tmp_path)
    assert first.fresh
    assert not only("codex", folder, tmp_path).fresh
    said = {"type": "message", "role": "assistant", "content": [{"text": "One more."}]}
    with source.open("a") as file:
        file.write(json.dumps({"type": "response_item", "payload": said}) + "\n")
    again = only("codex", folder, tmp_path)
    assert (again.fresh, again.run, again.answers) == (True, first.run, first.answers + 1)
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_a_torn_last_line_and_lines_of_tomorrow_are_no_harm(tmp_path):
    folder = tmp_path / "kept"
    shutil.copytree(CLAUDE, folder)
    (source,) = sources("claude", folder)
    whole = source.read_bytes()
    source.write_bytes(
        b'{"type": "hologram", "x": [1]}\n\xff\n' + whole + whole.splitlines()[-1][:40]
    )
    assert only("claude", folder, tmp_path).answers == 8


def test_a_session_that_ends_in_an_open_tool_call_was_interrupted(tmp_path):
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "sleep 9"}}
    members = {"type": "assistant", "sessionId": "s", "timestamp": "2026-11-15T07:11:05Z"}
    members["message"] = {"id": "m", "model": "x", "content": [use]}
    (tmp_path / "s.jsonl").write_text(json.dumps(members) + "\n")
    done = only("claude", tmp_path / "s.jsonl", tmp_path)
    story = tell(Tape(done.run))
    assert (story.status, len(story.in_flight)) == ("interrupted", 1)


def test_a_file_without_a_conversation_is_no_run(tmp_path):
    (tmp_path / "s.jsonl").write_text('{"type": "summary", "summary": "nothing"}\n')
    assert only("claude", tmp_path / "s.jsonl", tmp_path) is None
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_folder_that_is_not_there_is_said():
    with pytest.raises(UsageError, match="playhead import claude PATH"):
        sources("claude", Path("/no/such/folder"))


def test_the_command_lists_what_it_made_and_the_run_can_be_looked_at(tmp_path):
    words = ["import", "claude", str(CLAUDE), "--store", str(tmp_path)]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert "8 answers · 4 tool calls  Ask two helpers" in done.output
    (again,) = json.loads(CliRunner().invoke(cli, [*words, "--json"]).output)
    assert not again["fresh"]
    assert (
        "Go north please"
        in CliRunner().invoke(cli, ["show", again["run"], "--store", str(tmp_path)]).output
    )


def test_without_a_path_only_sessions_of_this_project_are_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", str(SAID))
    monkeypatch.chdir(tmp_path)
    words = ["import", "codex", "--store", str(tmp_path / "store"), "--json"]
    assert json.loads(CliRunner().invoke(cli, words).output) == []
    assert len(json.loads(CliRunner().invoke(cli, [*words, "--all"]).output)) == 1
