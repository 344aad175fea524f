import dataclasses
import json
import threading

import pytest

from playhead.tape import store as stores
from playhead.tape.annotations import FILE, NONE, annotate, read_annotations
from playhead.tape.manifest import read_manifest, write_manifest


def test_what_is_said_of_a_run_is_in_its_manifest(forge):
    path = forge(tags={"env": "ci", "os": "linux"}).end()
    annotate(path, name="other", note="Look at turn 3.", keep=True)
    annotate(path, tags={"env": "prod", "os": None, "new": "1"})
    manifest = read_manifest(path)
    assert manifest.name == "other"
    assert manifest.keep
    assert manifest.tags == {"env": "prod", "new": "1"}
    assert manifest.extra["note"] == "Look at turn 3."


def test_what_is_said_while_a_run_goes_on_outlives_its_end(forge):
    tape = forge()
    annotate(tape.path, keep=True, tags={"seen": "true"})
    path = tape.end()
    assert read_manifest(path).keep
    assert read_manifest(path).tags == {"seen": "true"}
    assert read_manifest(path).status == "ok"


def test_a_manifest_that_is_read_and_written_back_says_the_same(forge):
    path = forge().end()
    annotate(path, note="a", tags={"k": "v"})
    before = read_manifest(path)
    write_manifest(path, dataclasses.replace(before, events=before.events))
    assert read_manifest(path) == before


@pytest.mark.parametrize("damage", ["", "{", "[]", "7", '{"name": 7, "tags": [1], "keep": "yes"}'])
def test_marks_that_cannot_be_read_are_no_marks(forge, damage):
    path = forge().end()
    before = read_manifest(path)
    (path / FILE).write_text(damage)
    assert read_manifest(path) == before
    assert read_annotations(path) in (NONE, dataclasses.replace(NONE))


def test_a_pipe_in_place_of_marks_keeps_nobody_waiting(forge):
    path = forge().end()
    stores.os.mkfifo(path / FILE)
    assert read_manifest(path).name == "refund-agent"


def test_all_who_tag_a_run_at_the_same_time_are_heard(forge):
    path = forge().end()
    threads = [
        threading.Thread(target=annotate, args=(path,), kwargs={"tags": {f"k{n}": "v"}})
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_manifest(path).tags) == [f"k{n}" for n in range(8)]
    assert json.loads((path / FILE).read_text())["keep"] is None


def test_a_mark_is_announced_until_it_is_heard(forge, store):
    path = forge("run").end()
    assert stores.announced(store) == {}
    annotate(path, keep=True)
    words = stores.announced(store)
    assert list(words) == ["run"]
    stores.heard(store, {"run": words["run"] - 1})
    assert list(stores.announced(store)) == ["run"]
    stores.heard(store, words)
    assert stores.announced(store) == {}


def test_a_run_outside_a_store_is_announced_to_nobody(tmp_path, forge):
    path = forge("run").end()
    moved = path.rename(tmp_path / "run")
    annotate(moved, keep=True)
    assert read_manifest(moved).keep
    assert not (tmp_path / "changed").exists()
