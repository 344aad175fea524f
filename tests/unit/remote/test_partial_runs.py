"""A large run of a shared store is shown after a few megabytes; the rest is fetched when it is read."""

import base64
import random
import shutil

import pytest
from starlette.testclient import TestClient
from tests.unit.conftest import Forge

from playhead.errors import StoreError, TapeDamaged
from playhead.library.search import Search, query
from playhead.remote.objects import ObjectFolder
from playhead.remote.partial_runs import Connections
from playhead.remote.pushing import push
from playhead.remote.run_cache import fetch, open_run
from playhead.story import tell
from playhead.tape import blobs
from playhead.tape.care.verify import verify
from playhead.tape.layout import SEALED_FILE
from playhead.tape.reader import Tape
from playhead.tape.reading import partial_run
from playhead.tape.sealed.seal import seal
from playhead.views.web.api.api_app import app

MB = 1_000_000


class Counting(ObjectFolder):
    """Counts the bytes that leave the shared store."""

    fetched = 0

    def get(self, path, largest):
        raw = super().get(path, largest)
        Counting.fetched += len(raw or b"")
        return raw

    def get_range(self, path, start, stop):
        raw = super().get_range(path, start, stop)
        Counting.fetched += len(raw)
        return raw

    def stream(self, path):
        for block in super().stream(path):
            Counting.fetched += len(block)
            yield block


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """A run of about 12 MB in a shared store, with a payload of 1 MB outside its tape."""
    folder = tmp_path_factory.mktemp("pushed")
    noise = random.Random(1)
    tape = Forge(folder / "store", "large", name="refund")
    payload = noise.randbytes(MB)
    tape.tool("upload", {"$blob": blobs.push(tape.path, payload), "size": MB, "as": "bytes"})
    for number in range(360):
        text = base64.b64encode(noise.randbytes(30_000)).decode()
        tape.tool(f"tool{number}", {"n": number}, value=text)
    run = tape.end()
    seal(run)
    push(run, ObjectFolder(f"file://{folder}/shared", for_writing=True))
    return folder


@pytest.fixture
def large(pushed):
    return pushed / "store" / "runs" / "large"


@pytest.fixture
def counted(pushed, monkeypatch):
    monkeypatch.setattr("playhead.remote.partial_runs.ObjectFolder", Counting)
    monkeypatch.setattr(partial_run, "_connect", Connections().connect)
    Counting.fetched = 0
    return Counting(f"file://{pushed}/shared")


def lines_of(run):
    return [line.raw for line in Tape(run).lines()]


def test_a_first_view_fetches_the_index_and_a_few_ranges(large, counted, tmp_path):
    run = open_run("large", counted, tmp_path / "me")
    assert Counting.fetched < 0.2 * MB
    story = tell(Tape(run), first=4000)
    assert not story.whole
    assert [call.name for call in story.calls()][:3] == ["upload", "tool0", "tool1"]
    assert story.damage == ()
    assert story.manifest.events == Tape(large).manifest.events
    assert Counting.fetched < 5 * MB
    before = Counting.fetched
    assert tell(Tape(run), first=4000).totals.events == story.totals.events
    assert Counting.fetched == before  # the second view fetches nothing


def test_all_events_of_a_partial_run_are_those_of_the_original(large, counted, tmp_path):
    run = open_run("large", counted, tmp_path / "me")
    tape = Tape(run)
    assert tape.event(700) == Tape(large).event(700)  # one frame, near the end
    assert Counting.fetched < 2.5 * MB
    assert lines_of(run) == lines_of(large)
    first = next(event for event in tape.events() if event.kind == "call")
    assert tape.whole(first) == Tape(large).whole(first)
    before = Counting.fetched
    assert lines_of(run) == lines_of(large)
    assert Counting.fetched == before


def test_a_partial_run_becomes_whole_where_a_verb_needs_all_of_it(large, counted, tmp_path):
    part = open_run("large", counted, tmp_path / "me")
    tell(Tape(part), first=10)
    assert partial_run.is_partial(part)
    whole = fetch("large", counted, tmp_path / "me")
    assert (whole, partial_run.is_partial(whole)) == (part, False)
    assert verify(whole).ok
    assert (whole / SEALED_FILE).read_bytes() == (large / SEALED_FILE).read_bytes()
    before = Counting.fetched
    assert open_run("large", counted, tmp_path / "me") == whole
    assert Counting.fetched == before


def test_the_viewer_answers_a_first_view_and_a_payload_of_a_partial_run(large, counted, tmp_path):
    run = open_run("large", counted, tmp_path / "me")
    client = TestClient(app(run.parent.parent), base_url="http://localhost")
    found = client.get("/api/recordings/large?first=4000").json()
    assert found["partial"]["of"] == Tape(large).manifest.events
    assert "tool0" in found["model"]["strings"]
    assert client.get("/api/recordings").json()["runs"][0]["id"] == "large"
    assert Counting.fetched < 6 * MB
    (digest,) = [path.name for path in large.glob("blobs/*/*")]
    assert len(client.get(f"/api/recordings/large/blobs/{digest}").content) == MB
    assert client.get("/api/recordings/large").json()["partial"] is None


def test_the_catalogue_of_the_cache_does_not_fetch_runs(counted, tmp_path):
    run = open_run("large", counted, tmp_path / "me")
    found = query(run.parent.parent, Search(text="refund"))
    assert [one.entry.id for one in found.rows] == ["large"]
    assert Counting.fetched < 6 * MB


def test_missing_and_altered_objects_are_errors_and_not_events(pushed, counted, tmp_path):
    shutil.copytree(pushed / "shared", tmp_path / "shared")
    remote = ObjectFolder(f"file://{tmp_path}/shared")
    run = open_run("large", remote, tmp_path / "me")
    (sealed,) = [one.path for one in remote.list("blobs") if one.size > 5 * MB]
    raw = bytearray(remote.get(sealed, 100 * MB))
    raw[6 * MB : 6 * MB + 100] = bytes(100)
    remote.put(sealed, bytes(raw))
    tape = Tape(run)
    assert len(list(tape.events())) < tape.manifest.events
    assert "frame is damaged" in str(tape.damage[0])
    shutil.rmtree(tmp_path / "me")
    run = open_run("large", remote, tmp_path / "me")
    remote.delete([sealed])
    with pytest.raises(TapeDamaged, match="is missing. Push the run again"):
        list(Tape(run).events())


def test_a_process_without_the_shared_store_says_what_to_do(counted, tmp_path, monkeypatch):
    run = open_run("large", counted, tmp_path / "me")
    monkeypatch.setattr(partial_run, "_connect", None)
    assert Tape(run).manifest.name == "refund"
    with pytest.raises(StoreError, match="playhead pull large"):
        list(Tape(run).events())


def test_a_small_run_is_fetched_as_a_whole(run, remote, tmp_path):
    push(run, remote)
    assert not partial_run.is_partial(open_run("first", remote, tmp_path / "me"))


def test_the_cache_forgets_the_mark_of_a_run_that_it_evicts(counted, tmp_path, monkeypatch):
    run = open_run("large", counted, tmp_path / "me")
    monkeypatch.setattr("playhead.remote.run_cache._IN_USE_NS", -1)
    open_run("large", counted, tmp_path / "me", limit_bytes=1)
    assert (run.exists(), partial_run.is_partial(run)) == (False, False)


def test_unfinished_files_of_an_interrupted_pull_are_not_taken_for_a_part(counted, tmp_path):
    run = open_run("large", counted, tmp_path / "me")
    cache = run.parent.parent
    shutil.rmtree(run)
    left = cache / ".pull-large" / "run" / "tape-1.jsonl"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half of a line")
    again = open_run("large", counted, tmp_path / "me")
    assert (again / "tape-1.jsonl").exists() is False
    assert len(list(Tape(again).events())) == Tape(again).manifest.events


def test_a_mark_without_a_run_does_not_make_a_whole_run_partial(counted, tmp_path):
    run = open_run("large", counted, tmp_path / "me")
    shutil.rmtree(run)  # as if the process was killed after it had written the mark
    assert not partial_run.is_partial(fetch("large", counted, tmp_path / "me"))
