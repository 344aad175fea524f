import json
import zipfile

import pytest

from playhead.testing import Reply, ToolCall


@pytest.fixture
def run(forge):
    tape = forge()
    turn = tape.turn("answer")
    use = ToolCall(name="look", arguments={"n": 1})
    llm = tape.llm("Look.", Reply(text="Looking.", tool_calls=[use]), parent=turn)
    tape.tool("look", {"n": 1}, value="seen", parent=turn, cause=llm)
    tape.turn_end(turn)
    tape.end()
    return tape


def test_a_run_is_written_as_a_page_a_story_fixtures_and_a_tape(playhead, run, store, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    ended = playhead(
        *("export", run.path.name, "--store", store, "--html", out / "run.html"),
        *("--story", out / "run.json", "--fixtures", out / "fixtures"),
        *("--tape", out / "run.tape.jsonl"),
    )
    assert ended.code == 0, ended.err
    assert "<!doctype html>" in (out / "run.html").read_text()
    assert json.loads((out / "run.json").read_text())["totals"]["calls"] == 2
    (tool,) = json.loads((out / "fixtures" / "tool_calls.json").read_text())
    assert tool["result"] == "seen"
    assert (out / "run.tape.jsonl").stat().st_size > 0
    assert f"wrote {out / 'run.html'}" in ended.out


def test_what_was_written_is_told_as_json(playhead, run, store, tmp_path):
    page = tmp_path / "run.html"
    ended = playhead("export", run.path.name, "--store", store, "--html", page, "--json")
    (written,) = json.loads(ended.out)["written"]
    assert written == {"path": str(page), "bytes": page.stat().st_size}


def test_a_run_without_redaction_is_sent_with_a_warning(playhead, forge, store, tmp_path):
    tape = forge(redacted=False)
    tape.end()
    ended = playhead("export", tape.path.name, "--store", store, "--html", tmp_path / "x.html")
    assert ended.code == 0
    assert "without redaction" in ended.err


def test_nothing_to_write_is_said(playhead, run, store):
    ended = playhead("export", run.path.name, "--store", store)
    assert ended.code == 2
    assert "--html" in ended.err


def test_exports_are_for_their_owner_alone_and_follow_no_link_of_the_run(
    playhead, forge, store, here
):
    run = forge().end()
    (here / "id_rsa").write_text("a file of the user")
    (run / "linked").symlink_to(here / "id_rsa")
    files = {
        "--html": "a.html",
        "--story": "b.json",
        "--tape": "c.tape.jsonl",
        "--bundle": "d.playhead.zip",
    }
    words = [word for pair in files.items() for word in pair]
    done = playhead("export", run.name, "--store", store, *words, "--fixtures", "fixtures")
    assert done.code == 0, done.err
    made = [here / name for name in files.values()] + [*(here / "fixtures").iterdir()]
    assert {oct(one.stat().st_mode & 0o777) for one in made} == {"0o600"}
    with zipfile.ZipFile(here / "d.playhead.zip") as archive:
        assert not any(name.endswith("linked") for name in archive.namelist())


def test_an_export_reports_what_was_redacted_and_is_for_its_owner_alone(
    forge, playhead, store, tmp_path
):
    tape = forge(redacted=True)
    tape.tool("a", {"k": "[redacted:header:0123abcd]", "l": "[redacted:header:0123abcd]"}, value=1)
    tape.tool("b", {"k": "[redacted:github:89ab0123]"}, value=1)
    run = tape.end()
    targets = {"--html": "o.html", "--story": "o.json", "--tape": "o.tape.jsonl"}
    words = [word for flag, name in targets.items() for word in (flag, tmp_path / name)]
    done = playhead("export", run.name, *words, "--fixtures", tmp_path / "f", "--store", store)
    assert done.code == 0, done.err
    assert "2 secrets were redacted (1 github, 1 header)" in done.err
    written = [tmp_path / name for name in targets.values()] + list((tmp_path / "f").iterdir())
    assert {one.stat().st_mode & 0o777 for one in written} == {0o600}
