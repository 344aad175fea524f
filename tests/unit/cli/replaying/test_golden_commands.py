"""`playhead accept`: who is golden, who no longer is, and which files are rewritten."""

import json

from playhead.tape.manifest import read_manifest
from playhead.tape.single_file import pack
from playhead.testing import Reply


def golden(store):
    manifests = [read_manifest(path) for path in sorted((store / "runs").iterdir())]
    return [one.run for one in manifests if one.tags.get("golden") == "true"]


def test_a_run_is_tagged_and_names_what_it_supersedes(forge, store, playhead):
    forge("first").end()
    forge("second", replay_of="first").end()
    assert playhead("accept", "first", "--store", store).code == 0
    ended = playhead("accept", "second", "--store", store)
    assert ended.out == "second is golden, first no longer.\n"
    assert golden(store) == ["second"]
    assert read_manifest(store / "runs" / "second").extra["supersedes"] == ["first"]


def test_a_run_takes_the_mark_from_the_one_of_its_name(forge, store, playhead):
    forge("first", tags={"golden": "true"}).end()
    forge("other", name="another-agent", tags={"golden": "true"}).end()
    forge("second").end()
    playhead("accept", "second", "--store", store)
    assert golden(store) == ["other", "second"]


def test_to_accept_twice_changes_nothing(forge, store, playhead):
    forge("first").end()
    for _ in range(2):
        assert playhead("accept", "first", "--store", store).out == "first is golden.\n"
    assert golden(store) == ["first"]


def test_single_file_tapes_of_the_original_are_rewritten(forge, here, store, playhead):
    (here / ".git").mkdir()
    tape = forge("first")
    tape.llm("Hi.", Reply(text="old words"))
    target = here / "tests" / "tapes" / "hello.tape.jsonl"
    pack(tape.end(), target)
    other = here / "tests" / "tapes" / "other.tape.jsonl"
    pack(forge("unrelated").end(), other)
    before = other.read_bytes()
    new = forge("second", replay_of="first")
    new.llm("Hi.", Reply(text="new words"))
    new.end()
    told = json.loads(playhead("accept", "second", "--store", store, "--json").out)
    assert told == {"golden": "second", "superseded": [], "written": [str(target)]}
    text = target.read_text()
    assert json.loads(text.splitlines()[0])["run"] == "second"
    assert "new words" in text
    assert "old words" not in text
    assert other.read_bytes() == before


def test_a_file_can_be_named(forge, here, store, playhead):
    forge("first").end()
    ended = playhead("accept", "first", "--store", store, "--file", "a.tape.jsonl")
    assert ended.code == 0
    assert json.loads((here / "a.tape.jsonl").read_text().splitlines()[0])["run"] == "first"


def test_what_cannot_be_replayed_is_not_accepted(forge, store, playhead):
    forge("first", level="standard").end()
    ended = playhead("accept", "first", "--store", store)
    assert ended.code == 4
    assert "level 'standard'" in ended.err
    assert golden(store) == []


def test_a_plain_replay_has_no_answers_of_its_own_to_accept(forge, store, playhead):
    tape = forge("again", replay_of="first")
    call = tape.call("tool", "lookup", match={"rung": "exact", "of": "1:2", "quiet": True})
    tape.outcome(call)
    tape.end()
    ended = playhead("accept", "again", "--store", store)
    assert ended.code == 4
    assert "answers are on the tape of first" in ended.err


def test_a_file_that_nobody_would_find_as_a_tape_is_not_written(forge, here, store, playhead):
    forge("first").end()
    ended = playhead("accept", "first", "--file", "a.json", "--store", store)
    assert ended.code == 2
    assert "not the name of a single-file tape" in ended.err
    assert golden(store) == []
    assert not (here / "a.json").exists()


def test_a_golden_run_is_not_pruned(forge, store, playhead):
    forge("first").end()
    playhead("accept", "first", "--store", store)
    playhead("prune", "--keep", "0", "--yes", "--store", store)
    assert golden(store) == ["first"]
