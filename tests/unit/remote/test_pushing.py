"""A run is in the shared store whole or not at all, and comes back from there as a stranger's."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from playhead import clock
from playhead.errors import RemoteError, RunNotFound, StoreError, TapeDamaged, TapeError, UsageError
from playhead.library.annotate import comment, remove_comment
from playhead.library.run_rows import comments_of
from playhead.remote.objects import ObjectFolder
from playhead.remote.pulling import pull
from playhead.remote.pushing import push
from playhead.remote.remote_runs import delete_runs, remote_ids, remote_runs, sweep
from playhead.remote.run_cache import fetch
from playhead.remote.upload_state import uploads
from playhead.tape import blobs
from playhead.tape.annotations import annotate, read_annotations
from playhead.tape.care.verify import verify
from playhead.tape.manifest import read_manifest, write_manifest
from playhead.tape.origin import is_own
from playhead.tape.reader import Tape


def events_of(path):
    tape = Tape(path)
    return [tape.whole(event) for event in tape.events()]


def ids(remote, tmp_path):
    found, problems = remote_runs(remote, tmp_path / "reader")
    assert problems == []
    return [one.id for one in found]


def test_a_pulled_run_has_every_event_and_the_marks_of_the_pushed_one(run, remote, tmp_path):
    annotate(run, tags={"team": "shop"}, note="look at step 2", keep=True)
    done = push(run, remote)
    assert (done.is_new, done.sent) == (True, done.size)
    pulled = pull("first", remote, tmp_path / "other")
    assert events_of(pulled) == events_of(run)
    assert verify(pulled).ok
    manifest = read_manifest(pulled)
    assert manifest.tags == {"env": "ci", "team": "shop"}
    assert manifest.keep
    assert manifest.extra["note"] == "look at step 2"
    assert oct(pulled.stat().st_mode)[-3:] == "700"
    assert not list((tmp_path / "other").glob(".pull-*"))


def test_comments_of_two_people_who_push_the_same_run_are_all_kept(run, remote, tmp_path):
    push(run, remote)
    other = pull("first", remote, tmp_path / "other")
    comment(run, "from Ada", by="Ada")
    gone = comment(run, "a mistake", by="Ada")
    comment(other, "from Bob", by="Bob")
    push(run, remote)
    remove_comment(run, gone.id)
    push(other, remote)
    push(run, remote)
    push(other, remote)
    third = pull("first", remote, tmp_path / "third")
    for path in (run, other, third):
        found = {one["text"] for one in comments_of(read_manifest(path))}
        assert found == {"from Ada", "from Bob"}


def test_marks_of_two_people_who_push_the_same_run_are_the_latest_of_each(run, remote, tmp_path):
    push(run, remote)
    other = pull("first", remote, tmp_path / "other")
    annotate(other, keep=True, tags={"seen": "yes"}, note="early", by="Bob")
    push(other, remote)
    annotate(run, note="late", by="Ada")
    push(run, remote)
    assert pull("first", remote, tmp_path / "other") == other
    third = pull("first", remote, tmp_path / "third")
    for path in (run, other, third):
        manifest = read_manifest(path)
        assert manifest.keep
        assert manifest.tags == {"env": "ci", "seen": "yes"}
        assert manifest.extra["note"] == "late"
        assert read_annotations(path).authors["note"]["by"] == "Ada"


def test_a_mark_replaces_one_from_a_machine_whose_clock_is_ahead(
    run, remote, tmp_path, monkeypatch
):
    push(run, remote)
    other = pull("first", remote, tmp_path / "other")
    with monkeypatch.context() as patch:
        patch.setattr(clock, "wall_ns", lambda: 4_000_000_000 * 10**9)
        annotate(run, note="from the future", keep=True, by="Ada")
    push(run, remote)
    push(other, remote)
    annotate(other, note="corrected", keep=False, by="Bob")
    push(other, remote)
    push(run, remote)
    assert read_manifest(run).extra["note"] == "corrected"
    assert not read_manifest(run).keep


def test_a_push_from_another_machine_sends_nothing_or_what_is_missing(run, remote, tmp_path):
    push(run, remote)
    other = pull("first", remote, tmp_path / "other")
    assert push(other, remote).sent == 0
    gone = max(remote.list("blobs"), key=lambda one: one.size)
    remote.delete([gone.path])
    assert push(other, remote).sent == gone.size
    assert events_of(pull("first", remote, tmp_path / "third")) == events_of(run)


def test_a_push_that_is_torn_at_any_write_is_invisible_and_continues(run, torn, remote, tmp_path):
    whole = push(run, remote).size
    delete_runs(remote, ["first"])
    sweep(remote, tmp_path, grace_ns=-(10**18))
    for writes in range(20):
        try:
            push(run, torn(writes))
        except RemoteError:
            assert ids(remote, tmp_path) == [], writes
            with pytest.raises(RunNotFound):
                pull("first", remote, tmp_path / "early")
            continue
        break
    # Four files and a marker: without the writes of the attempts before, five would be needed.
    assert writes == 3
    assert push(run, remote).sent == 0
    assert events_of(pull("first", remote, tmp_path / "other")) == events_of(run)
    assert push(run, remote).size == whole


def test_a_pull_that_is_torn_leaves_no_run_and_continues(run, remote, tmp_path, monkeypatch):
    push(run, remote)
    home = tmp_path / "other"
    stream = ObjectFolder.stream
    for limit in range(10):
        streams = iter(range(limit))

        def torn(self, path, streams=streams):
            if next(streams, None) is None:
                raise RemoteError("the network is gone")
            return stream(self, path)

        monkeypatch.setattr(ObjectFolder, "stream", torn)
        try:
            pull("first", remote, home)
        except RemoteError:
            assert list((home / "runs").iterdir()) == []
            continue
        break
    # Four files: without those of the attempts before, four would be needed.
    assert limit == 3
    assert events_of(home / "runs" / "first") == events_of(run)


def test_unfinished_files_of_a_killed_pull_do_not_become_files_of_the_run(run, remote, tmp_path):
    push(run, remote)
    left = tmp_path / "other" / ".pull-first" / "run" / "blobs" / "78" / "78ab.0011.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    pulled = pull("first", remote, tmp_path / "other")
    assert list(pulled.rglob("*.part")) == []
    assert verify(pulled).ok


def test_equal_contents_are_stored_once(forge, remote, tmp_path):
    for name in ("a", "b"):
        path = forge(name).end()
        blobs.push(path, b"y" * 300_000)
        push(path, remote)
    sizes = [one.size for one in remote.list("blobs")]
    assert sum(size > 250_000 for size in sizes) == 1
    assert sorted(ids(remote, tmp_path)) == ["a", "b"]


def test_pushing_again_shares_new_marks_and_sends_nothing_else(run, remote, tmp_path):
    push(run, remote)
    annotate(run, tags={"env": None, "seen": "yes"})
    again = push(run, remote)
    assert (again.is_new, again.sent) == (False, 0)
    (one,), _ = remote_runs(remote, tmp_path / "reader")
    assert one.manifest.tags == {"seen": "yes"}


def test_another_run_of_the_same_id_is_refused_until_it_is_forced(forge, run, remote, tmp_path):
    push(run, remote)
    shutil.rmtree(run)
    other = forge("first", name="other").end()
    with pytest.raises(UsageError, match="push --force"):
        push(other, remote)
    assert read_manifest(pull("first", remote, tmp_path / "a")).name == "refund"
    push(other, remote, force=True)
    assert read_manifest(pull("first", remote, tmp_path / "b")).name == "other"


def test_two_writers_at_once_have_one_winner(forge, tmp_path, url):
    homes = []
    for number in range(6):
        forge("same", name=f"writer {number}").end()
        homes.append(tmp_path / f"home-{number}")
        (tmp_path / "store").rename(homes[-1])

    def one(home):
        try:
            push(home / "runs" / "same", ObjectFolder(url, for_writing=True))
        except (RemoteError, UsageError):
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(one, homes))
    assert won.count(True) == 1
    winner = read_manifest(pull("same", ObjectFolder(url), tmp_path / "reader")).name
    assert winner == f"writer {won.index(True)}"


def test_a_run_in_progress_is_not_pushed(forge, remote):
    path = forge("busy").end()
    alive = {"status": "running", "pid": os.getpid(), "birth": "", "host": clock.host()}
    write_manifest(path, replace(read_manifest(path), **alive))
    with pytest.raises(UsageError, match="still running"):
        push(path, remote)


def test_a_run_that_died_is_interrupted_for_every_machine(forge, remote, tmp_path):
    path = forge("dead").end()
    died = {"status": "running", "pid": 2**22 + 1, "birth": "1", "host": clock.host()}
    write_manifest(path, replace(read_manifest(path), **died))
    push(path, remote)
    assert read_manifest(pull("dead", remote, tmp_path / "other")).status == "interrupted"


def test_a_pulled_run_is_never_the_users_own(run, remote, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path / "home"))
    push(run, remote)
    pulled = pull("first", remote, tmp_path / "home")
    assert not is_own(pulled, read_manifest(pulled))
    assert read_manifest(pulled).extra["pulled_from"] == remote.url
    # Pushing it on takes the same objects: what holds on one machine only stays there.
    other = ObjectFolder(f"{remote.url}-2", for_writing=True)
    push(pulled, other)
    assert {one.path for one in other.list("blobs")} == {one.path for one in remote.list("blobs")}


def damaged_commits(members):
    def path(name):
        return {**members, "files": [{**members["files"][0], "path": name}]}

    yield from map(path, ("../../evil", "/etc/evil", "a/../b", ".bashrc", "x" * 300, ""))
    yield {**members, "run": "other"}
    yield {**members, "files": "x"}
    yield {**members, "files": []}
    yield {**members, "files": [{**members["files"][0], "sha256": "../../x"}]}
    yield {**members, "files": [{**members["files"][0], "size": -1}]}
    yield {**members, "contents": [{**members["files"][0], "path": "0" * 64}]}
    yield {**members, "version": 99}
    yield []


def test_a_hostile_marker_writes_nothing(run, remote, tmp_path):
    push(run, remote)
    marker = tmp_path / "shared" / "runs" / "first" / "commit.json"
    members = json.loads(marker.read_text())
    for number, one in enumerate(damaged_commits(members)):
        marker.write_text(json.dumps(one))
        home = tmp_path / f"victim-{number}"
        with pytest.raises(TapeError):
            pull("first", remote, home)
        assert list((home / "runs").iterdir()) == []
        assert not (tmp_path / "evil").exists()


def test_objects_that_were_altered_or_are_missing_are_named(run, remote, tmp_path):
    push(run, remote)
    blobs = [path for path in (tmp_path / "shared" / "blobs").rglob("*") if path.is_file()]
    for number, path in enumerate(blobs):
        raw = path.read_bytes()
        for bad in (raw[:-1], raw + b"x", bytes([raw[0] ^ 1]) + raw[1:], None):
            path.unlink()
            if bad is not None:
                path.write_bytes(bad)
            home = tmp_path / f"reader-{number}"
            with pytest.raises(TapeDamaged, match=path.name):
                pull("first", remote, home)
            path.write_bytes(raw)
        assert events_of(pull("first", remote, home)) == events_of(run)


def test_a_sweep_deletes_what_torn_uploads_left_and_nothing_that_a_run_needs(
    forge, run, remote, torn, tmp_path
):
    push(run, remote)
    path = forge("second").end()
    for letter in (b"p", b"q"):
        blobs.push(path, letter * 100_000)
    with pytest.raises(RemoteError):
        push(path, torn(3))
    before = {one.path for one in remote.list("blobs")}
    assert sweep(remote, tmp_path / "reader") == (0, 0)  # they are young
    number, _ = sweep(remote, tmp_path / "reader", grace_ns=-(10**18))
    assert number == 3
    assert len(list(remote.list("blobs"))) == len(before) - 3
    assert events_of(pull("first", remote, tmp_path / "other")) == events_of(run)


def test_a_sweep_deletes_nothing_while_a_marker_cannot_be_read(run, remote, tmp_path):
    push(run, remote)
    (tmp_path / "shared" / "runs" / "first" / "commit.json").write_text("{}")
    assert sweep(remote, tmp_path / "reader", grace_ns=-(10**18)) == (0, 0)


def test_the_cache_keeps_to_its_limit_and_loses_the_oldest_first(forge, remote, tmp_path):
    for name in ("a", "b", "c"):
        tape = forge(name)
        tape.tool("read", {"text": name * 100_000})
        push(tape.end(), remote)
    home = tmp_path / "reader"
    hour = 3600 * 10**9
    for age, name in ((9, "a"), (5, "b")):
        path = fetch(name, remote, home, limit_bytes=150_000)
        past = path.stat().st_mtime_ns - age * hour
        os.utime(path, ns=(past, past))
    third = fetch("c", remote, home, limit_bytes=150_000)
    assert [one.name for one in third.parent.iterdir()] == ["c"]
    # One that was used just now stays, even over the limit.
    fetch("a", remote, home, limit_bytes=150_000)
    assert sorted(one.name for one in third.parent.iterdir()) == ["a", "c"]


def test_other_programs_objects_and_strange_names_do_not_disturb_a_list(run, remote, tmp_path):
    push(run, remote)
    remote.put("runs/.hidden/commit.json", b"{}")
    remote.put("runs/readme.txt", b"hello")
    remote.put("runs/a/b/commit.json", b"{}")
    assert ids(remote, tmp_path) == ["first"]
    assert remote_ids(remote) == ["first"]
    assert uploads(run.parent.parent)["first"].state == "pushed"


def test_a_full_disk_is_said_before_the_first_byte(run, remote, tmp_path, monkeypatch):
    push(run, remote)
    room = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr("playhead.remote.pulling.shutil.disk_usage", lambda _: room)
    with pytest.raises(StoreError, match="GB free"):
        pull("first", remote, tmp_path / "other")


@pytest.mark.parametrize("wrong", ["s3://", "ftp://x/y", "tapes", "/tmp/tapes", ""])
def test_what_is_no_address_of_a_shared_store_is_named(wrong):
    with pytest.raises(UsageError, match="is not a shared store"):
        ObjectFolder(wrong)
