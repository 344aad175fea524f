"""Files that are hard to record: odd names, special files, secrets, hard links, databases, many at once."""

from __future__ import annotations

import errno
import itertools
import json
import os
import pwd
import random
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.workspace.conftest import Session, fingerprint

from playhead.errors import StoreError, TapeDamaged, UsageError
from playhead.host import native_core
from playhead.story import tell
from playhead.tape.care.verify import verify
from playhead.tape.reader import Tape
from playhead.views.text.story import foot_of
from playhead.workspace import known_files, taping
from playhead.workspace.blobs import packs
from playhead.workspace.blobs.packs import apply_delta, encode_delta
from playhead.workspace.blobs.pool import Pool, PoolWriter
from playhead.workspace.chosen_files import LARGEST_IGNORED, why_refused
from playhead.workspace.folder_compare import compare_folder
from playhead.workspace.history import apply_changes, read_history
from playhead.workspace.restore import apply_effects, restore_tree
from playhead.workspace.snapshot import save_known, take_snapshot
from playhead.workspace.taping import open_workspaces
from playhead.workspace.tree_listing import FileEntry, decode_listing, encode_listing, shown
from playhead.workspace.watch import watcher


def restored(session: Session, target: Path) -> dict[bytes, tuple[int, bytes]]:
    history = session.stop()
    restore_tree(history.at(None), str(target), history.content)
    return fingerprint(target)


def test_names_with_newlines_and_invalid_utf8_come_back(session: Session, tmp_path: Path) -> None:
    names = [b"a\nb.txt", b"caf\xe9.txt", b" leading", "日本.txt".encode(), b"-rf", b"quote'\".txt"]
    session.marks.start("1:1")
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(session.folder), name))).write_bytes(name)
    session.marks.end("1:1")
    found = restored(session, tmp_path / "out")
    assert [found[name][1] for name in names] == names


def test_special_files_are_named_and_left_out(session: Session, tmp_path: Path) -> None:
    session.marks.start("1:1")
    os.mkfifo(session.folder / "pipe")
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(session.folder / "sock"))
    (session.folder / "plain").write_text("x")
    session.marks.end("1:1")
    found = restored(session, tmp_path / "out")
    assert b"plain" in found
    assert b"pipe" not in found


def test_a_call_that_makes_only_a_special_file_names_it(session: Session) -> None:
    session.call("mkfifo pipe")
    call = session.call("echo x > plain")
    first, second = session.stop().effects
    assert (first.calls, first.left_out) == (("1:1",), (("pipe", "special: FIFO"),))
    assert (second.calls, second.left_out) == ((call,), ())


def test_changes_of_a_folder_whose_snapshot_failed_stop_nothing(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The store is full when the run starts, and the folder is watched already."""

    def take(*_: object, entering: Callable[[bytes], object], **__: object) -> None:
        entering(b"")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(taping, "take_snapshot", take)
    session = Session(tmp_path / "home", project)
    session.call("echo x > plain")
    history = session.stop()
    assert history.effects == []
    assert "No space left" in str(history.starts[0].refused)
    assert "no longer recorded" not in capfd.readouterr().err


def test_a_secret_file_is_recorded_as_a_hash(project: Path, tmp_path: Path) -> None:
    (project / ".env").write_text("API_KEY=very-secret-value")
    session = Session(tmp_path / "home", project)
    history = session.stop()
    entry = history.at(None)[b".env"]
    assert entry.id.startswith("hash:")
    assert not entry.is_stored
    packs = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*.pack"))
    assert b"very-secret-value" not in packs
    missing = restore_tree(history.at(None), str(tmp_path / "out"), history.content)
    assert [one.path for one in missing] == [b".env"]


def test_a_file_that_contains_a_known_secret_is_not_stored(project: Path, tmp_path: Path) -> None:
    (project / "config.txt").write_text("token = sk-live-1234567890")
    pool = Pool(tmp_path / "home")
    writer = PoolWriter(pool, "r")
    _, state = take_snapshot(str(project), pool, writer, secrets=lambda: (b"sk-live-1234567890",))
    assert state.entries[b"config.txt"].id.startswith("hash:")


def test_large_ignored_folders_are_named_and_left_out(project: Path, tmp_path: Path) -> None:
    for number in range(501):
        (project / "build" / f"part{number}.o").write_text("x")
    pool = Pool(tmp_path / "home")
    snapshot, state = take_snapshot(str(project), pool, PoolWriter(pool, "r"))
    assert [(one.path, one.why) for one in snapshot.left_out] == [(b"build", "ignored")]
    assert b"empty" in state.entries


def test_a_write_through_another_link_is_seen_under_both_names(session: Session) -> None:
    session.call("echo one > a.txt && ln a.txt b.txt")
    session.call("echo two >> b.txt")
    history = session.stop()
    tree = history.at(None)
    assert history.content(tree[b"a.txt"]) == b"one\ntwo\n" == history.content(tree[b"b.txt"])


def test_a_change_under_one_name_of_a_file_is_a_change_of_all_its_names(session: Session) -> None:
    # The first name had no second one at the start of the run.
    names, expected = (b"notes.txt", b"linked.txt"), list[set[tuple[int, bytes]]]()
    for script in (
        "ln notes.txt linked.txt; echo one >> linked.txt",
        "chmod 600 notes.txt",
        "echo two >> notes.txt; ln notes.txt third.txt; echo three >> third.txt; rm third.txt",
        "echo four >> linked.txt; rm linked.txt",
    ):
        session.call(script)
        found = fingerprint(session.folder)
        expected.append({found[name] for name in names if name in found})
    history = session.stop()
    tree, states = dict(history.start()), dict[str, set[tuple[int, bytes]]]()
    for effect in history.effects:
        apply_changes(tree, effect.changes)
        shown = [tree[name] for name in names if name in tree]
        states[effect.calls[0]] = {(one.mode, history.content(one)) for one in shown}
    assert list(states.values()) == expected
    assert expected[3] == {(0o100600, b"one\ntwo\nthree\nfour\n")}


def test_a_large_file_that_a_killed_recorder_did_not_store_is_a_counted_loss(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = PoolWriter.put

    def put_small(writer: PoolWriter, content: bytes, base: str | None = None) -> str:
        if len(content) == 2_000_001:
            raise RuntimeError("the recorder ends here")
        return put(writer, content, base)

    monkeypatch.setattr(PoolWriter, "put", put_small)
    monkeypatch.setattr(watcher, "_QUIET_S", 1000)  # files are stored at the marks of calls alone
    session.call("head -c 2000000 /dev/zero > stored.bin")
    session.call("head -c 2000001 /dev/zero > lost.bin; echo small > small.txt")
    history = session.stop()
    assert {b"stored.bin", b"small.txt"} <= history.at(None).keys()
    assert b"lost.bin" not in history.at(None)
    assert history.gaps == 1
    assert verify(session.recorder.run).lost_file_changes == 1
    story = tell(Tape(session.recorder.run))
    assert story.lost_file_changes == 1
    foot = [one.plain for one in foot_of(story, 80)]
    assert "! 1 change of a file could not be recorded" in foot


def test_ten_thousand_files_at_once_are_all_recorded(session: Session) -> None:
    folder = "mkdir $d; for f in $(seq 100); do echo $f > $d/$f; done"
    script = f"mkdir many; cd many; for d in $(seq 100); do {folder}; done"
    session.call(script)
    history = session.stop()
    tree = history.at(None)
    found = [path for path, entry in tree.items() if path.startswith(b"many/") and entry.is_file]
    assert len(found) == 10_000
    assert history.content(tree[b"many/7/42"]) == b"42\n"


def test_a_deleted_repository_is_restored_from_the_store(session: Session, tmp_path: Path) -> None:
    expected = fingerprint(session.folder)
    history = session.stop()
    session.shell("rm -rf .git src notes.txt")
    restore_tree(history.start(), str(tmp_path / "out"), history.content)
    found = fingerprint(tmp_path / "out")
    assert found == expected
    assert any(entry.git_object for entry in history.start().values())


def test_a_second_snapshot_stores_next_to_nothing(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    os.utime(project / "notes.txt", (1, 1))
    for name, most in (("r1", 1 << 20), ("r2", 2_000)):
        pool = Pool(home)
        writer = PoolWriter(pool, name)
        snapshot, state = take_snapshot(str(project), pool, writer)
        save_known(pool, state)
        writer.close()
        assert writer.stored < most
        assert snapshot.entries == len(state.entries)


def test_a_folder_with_old_times_is_not_listed_again_and_nothing_in_it_is_missed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, listed = tmp_path / "home", list[str]()
    scandir = os.scandir

    def scan(path: bytes) -> object:
        listed.append(os.path.relpath(os.fsdecode(path), project))
        return scandir(path)

    def snapshot(name: str) -> set[bytes]:
        listed.clear()
        pool = Pool(home)
        writer = PoolWriter(pool, name)
        taken, state = take_snapshot(str(project), pool, writer)
        save_known(pool, state)
        writer.close()
        assert state.entries == decode_listing(pool.read(taken.tree))
        return set(state.entries)

    for name in ("old", "left"):
        (project / name / "deep").mkdir(parents=True)
        (project / name / "one.txt").write_text("one")
        (project / name / "deep" / "two.txt").write_text("two")
    os.mkfifo(project / "left" / "pipe")
    before = snapshot("r1")  # the folders are too new to be trusted
    monkeypatch.setattr(known_files, "RACY_NS", -(10**18))
    snapshot("r2")
    monkeypatch.setattr(os, "scandir", scan)
    assert snapshot("r3") == before
    # A folder with a file that was left out is listed: the file is named in every run.
    assert "left" in listed
    assert not {"old", "old/deep", "left/deep"} & set(listed)
    (project / "old" / "deep" / "two.txt").write_text("changed without a change of the folder")
    (project / "left" / "deep" / "new.txt").write_text("new")
    assert snapshot("r4") == before | {b"left/deep/new.txt"}
    assert "left/deep" in listed
    assert "old/deep" not in listed
    (project / "old" / "one.txt").rename(project / "old" / "two.txt")
    assert snapshot("r5") - before == {b"left/deep/new.txt", b"old/two.txt"}


@pytest.mark.parametrize("is_native", [True, False])
def test_a_snapshot_with_a_cache_is_the_same_as_one_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_native: bool
) -> None:
    folder, chance, ticks = tmp_path / "p", random.Random(5), itertools.count(10**18, 10**9)
    monkeypatch.setattr(known_files, "RACY_NS", -(10**19))
    native_core.load()
    if not is_native:
        monkeypatch.setattr(native_core, "core", None)

    def touch(path: Path) -> None:
        """Give a path a time of its own: clocks of file systems may be slower than this test."""
        for one in (path, path.parent):
            with suppress(FileNotFoundError):
                os.utime(one, ns=(0, next(ticks)), follow_symlinks=False)

    def change(number: int) -> None:
        places = [folder, *(one for one in sorted(folder.rglob("*")) if one.is_dir())]
        path = chance.choice(places) / f"f{chance.randrange(4)}"
        kind, is_new = chance.randrange(8), not os.path.lexists(path)
        is_folder = path.is_dir() and not path.is_symlink()
        if kind == 0:
            shutil.rmtree(path) if is_folder else path.unlink(missing_ok=True)
        elif kind == 1 and is_new:
            path.mkdir()
        elif kind == 2 and not is_new and not path.is_symlink():
            path.chmod(chance.choice((0o700, 0o755)))
        elif kind == 3 and is_new:
            path.symlink_to("f1")
        elif kind == 4 and is_new:
            files = [one for one in places[-1].iterdir() if one.is_file()]
            os.link(files[0], path) if files else path.write_text("own")
        elif not is_folder and not path.is_symlink():
            path.write_text("x" * (number if kind < 7 else LARGEST_IGNORED + number))
        touch(path)

    def snapshot(home: Path, excluded: tuple[str, ...]) -> tuple[object, ...]:
        pool = Pool(home)
        writer = PoolWriter(pool, "r")
        taken, state = take_snapshot(str(folder), pool, writer, excluded=excluded)
        save_known(pool, state)
        writer.close()
        assert state.entries == decode_listing(pool.read(taken.tree))
        return state.entries, state.stamps, state.links, taken.left_out, taken.bytes

    (folder / ".git").mkdir(parents=True)
    for number in range(1, 26):
        for _ in range(3):
            change(number)
        if number % 8 == 0:
            (folder / ".gitignore").write_text(f"f{number // 8}\n")
            touch(folder / ".gitignore")
        excluded = (str(folder / "f0"),) if number % 5 == 0 else ()
        cached = snapshot(tmp_path / "home", excluded)
        assert cached == snapshot(tmp_path / f"fresh{number}", excluded)


def test_an_open_database_comes_back_whole(project: Path, tmp_path: Path) -> None:
    database = sqlite3.connect(project / "state.db", isolation_level=None)
    database.execute("CREATE TABLE t (x)")
    database.execute("BEGIN")  # one transaction: each one waits for the disk
    database.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(1000)])
    database.execute("COMMIT")
    session = Session(tmp_path / "home", project)
    session.marks.start("1:1")
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO t VALUES (-1)")
    session.marks.end("1:1")
    history = session.stop()
    database.execute("ROLLBACK")
    database.close()
    restore_tree(history.at(None), str(tmp_path / "out"), history.content)
    copy = sqlite3.connect(tmp_path / "out" / "state.db")
    assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert copy.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    copy.close()


@pytest.mark.parametrize("folder", ["/", "/tmp", str(Path.home())])
def test_shared_folders_are_refused(folder: str, tmp_path: Path) -> None:
    pool = Pool(tmp_path)
    with pytest.raises(StoreError, match="is not recorded as a workspace"):
        take_snapshot(folder, pool, PoolWriter(pool, "r"))
    assert why_refused(str(tmp_path)) is None


def test_a_folder_that_is_not_empty_is_not_restored_into(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UsageError, match="is not empty"):
        restore_tree({}, str(tmp_path), lambda _: b"")
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_a_tape_cannot_write_outside_the_folder(tmp_path: Path) -> None:
    entry = FileEntry(0o100644, 1, 0, "a" * 64)
    with pytest.raises(TapeDamaged, match="outside of it"):
        decode_listing(encode_listing({b"../evil": entry}))
    (tmp_path / "out").mkdir()
    link = FileEntry(0o120777, 1, 0, "link:" + os.fsencode(tmp_path).hex())
    with pytest.raises(UsageError, match="symbolic link"):
        restore_tree({b"l": link, b"l/x": entry}, str(tmp_path / "out"), lambda _: b"x")


def test_effects_applied_to_a_restored_tree_give_the_next_one(
    session: Session, tmp_path: Path
) -> None:
    session.call(
        "rm src/m1.py; mv src/m2.py n; ln -s n l; mkdir -p a/b; chmod 700 src; rm notes.txt; mkdir notes.txt"
    )
    history = session.stop()
    folder = tmp_path / "out"
    restore_tree(history.start(), str(folder), history.content)
    assert compare_folder(history.start(), str(folder)) == []
    for effect in history.effects:
        apply_effects(str(folder), effect.changes, history.content)
    assert compare_folder(history.at(None), str(folder)) == []
    (folder / "n").write_text("other")
    assert [one.path for one in compare_folder(history.at(None), str(folder))] == [b"n"]


def test_a_pack_cut_short_by_a_kill_keeps_every_whole_blob(tmp_path: Path) -> None:
    pool = Pool(tmp_path)
    writer = PoolWriter(pool, "r")
    names = [writer.put(b"content %d" % number * 50) for number in range(20)]
    pack = next(tmp_path.rglob("*.pack"))
    pack.write_bytes(pack.read_bytes()[:-5])
    again = Pool(tmp_path)
    assert again.read(names[0]) == b"content 0" * 50
    assert [name in again for name in names] == [True] * 19 + [False]
    with pytest.raises(TapeDamaged, match="is missing"):
        again.read(names[-1])


def test_versions_of_a_growing_file_are_stored_as_differences(tmp_path: Path) -> None:
    writer = PoolWriter(Pool(tmp_path), "r")
    content, name, names = os.urandom(200_000), None, []
    for _ in range(50):
        content += os.urandom(100)
        name = writer.put(content, name)
        names.append((name, content))
    assert writer.stored < 1_000_000
    writer.close()
    pool = Pool(tmp_path)
    assert all(pool.read(name) == content for name, content in names)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"", b"x"),
        (b"x", b""),
        (b"a" * 5000, b"a" * 2000 + b"b" + b"a" * 3000),
        (bytes(range(256)) * 40, bytes(range(256)) * 20 + b"new" + bytes(range(256)) * 20),
        (b"abc" * 3000, b"c" + b"abc" * 3000),
    ],
)
def test_a_delta_gives_the_new_version(old: bytes, new: bytes) -> None:
    assert apply_delta(old, encode_delta(old, new)) == new


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_unreadable_files_are_named_and_the_rest_is_recorded() -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    with tempfile.TemporaryDirectory() as name:
        folder, home = Path(name) / "p", Path(name) / "h"
        folder.mkdir()
        home.mkdir()
        Path(name).chmod(0o755)
        (folder / "open.txt").write_text("open")
        (folder / "closed.txt").write_text("closed")
        (folder / "closed.txt").chmod(0o600)
        (folder / "locked").mkdir(mode=0o700)
        os.chown(home, nobody, -1)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setuid(nobody)
                pool = Pool(home)
                snapshot, _ = take_snapshot(str(folder), pool, PoolWriter(pool, "r"))
                told = [(os.fsdecode(one.path), one.why) for one in snapshot.left_out]
                os.write(write, json.dumps([snapshot.entries, told]).encode())
            finally:
                os._exit(0)
        os.close(write)
        with open(read, "rb") as pipe:
            entries, left_out = json.loads(pipe.read())
        os.waitpid(child, 0)
    assert entries == 3
    assert left_out == [
        ["closed.txt", "unreadable: Permission denied"],
        ["locked", "unreadable: Permission denied"],
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_that_becomes_readable_is_recorded_with_its_files() -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    with tempfile.TemporaryDirectory() as name:
        folder, home = Path(name) / "p", Path(name) / "h"
        (folder / "locked").mkdir(parents=True)
        (folder / "locked" / "kept.txt").write_text("kept")
        home.mkdir()
        for one in (Path(name), folder, home, folder / "locked", folder / "locked" / "kept.txt"):
            os.chown(one, nobody, -1)
        (folder / "locked").chmod(0)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setuid(nobody)
                session = Session(home, folder)
                session.call("chmod 755 locked")
                session.call("echo new > locked/new.txt")
                history = session.stop()
                told = [[shown(c.path) for c in one.changes] for one in history.effects]
                os.write(write, json.dumps(told).encode())
            finally:
                os._exit(0)
        os.close(write)
        with open(read, "rb") as pipe:
            told = json.loads(pipe.read())
        os.waitpid(child, 0)
    assert told == [["locked", "locked/kept.txt"], ["locked/new.txt"]]


def test_a_huge_file_is_named_and_not_read(project: Path, tmp_path: Path) -> None:
    with (project / "huge.bin").open("wb") as file:
        file.truncate(1 << 30)
    session = Session(tmp_path / "home", project)
    session.call("echo more >> huge.bin; echo x > small.txt")
    history = session.stop()
    assert history.at(None)[b"huge.bin"].id == "none"
    assert b"small.txt" in history.at(None)
    assert {"path": "huge.bin", "why": "large"} in history.starts[0].facts["left_out"]


def test_a_full_disk_is_a_counted_gap(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.call("echo 1 > before.txt")
    # Content is stored after the call has ended, and before the next one starts.
    session.call("true")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(packs.PackWriter, "add", refuse)
        session.call("echo 2 > during.txt")
        session.call("true")
    session.call("echo 3 > after.txt")
    history = session.stop()
    tree = history.at(None)
    assert not tree[b"during.txt"].is_stored
    assert history.content(tree[b"before.txt"]) == b"1\n"
    assert history.content(tree[b"after.txt"]) == b"3\n"
    assert history.gaps == 1


def test_a_resumed_run_knows_what_changed_in_between(tmp_path: Path, project: Path) -> None:
    first = Session(tmp_path / "home", project)
    first.call("echo 1 > one.txt")
    first.tape.stop()
    (project / "between.txt").write_text("by hand")
    tape = open_workspaces(first.recorder, tmp_path / "home", [project])
    tape.stop()
    first.recorder.close()
    history = read_history(Tape(first.recorder.run), tmp_path / "home")
    assert [[one.path for one in effect.changes] for effect in history.effects] == [
        [b"one.txt"],
        [b"between.txt"],
    ]
    assert len(history.starts) == 1


def test_files_that_are_deleted_before_they_are_read_are_counted_gaps(session: Session) -> None:
    """The next call deletes what the last one made, while it is still being read."""
    session.call("mkdir d && cd d && seq 2000 | split -l 1 -a 3 -")
    session.call("rm -rf d")
    history = session.stop()
    seen = {change.path for effect in history.effects for change in effect.changes}
    assert len([one for one in seen if one.startswith(b"d/")]) + history.gaps >= 2000


def test_a_worktree_is_recorded_with_its_repository(tmp_path: Path, project: Path) -> None:
    subprocess.run(
        ["git", "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other"],
        cwd=project,
        check=True,
    )
    session = Session(tmp_path / "home", tmp_path / "tree")
    session.call("echo more > more.txt && git add -A && git commit -qm more")
    history = session.stop()
    assert [(one.root, one.only) for one in history.starts] == [
        (str(tmp_path / "tree"), None),
        (str(project), (".git",)),
    ]
    assert b".git/refs/heads/other" in {
        change.path for one in history.effects if one.workspace == 1 for change in one.changes
    }
    assert all(path.partition(b"/")[0] == b".git" for path in history.at(None, 1))


def test_a_small_folder_that_git_ignores_is_recorded_until_it_grows(session: Session) -> None:
    session.call("mkdir -p build/sub; echo result > build/sub/report.txt")
    session.call("cd build && seq 600 | split -l 1 -a 3 -")
    history = session.stop()
    first = next(one for one in history.effects if one.calls == ("1:1",))
    assert b"build/sub/report.txt" in {one.path for one in first.changes}
    assert len([one for one in history.at(None) if one.startswith(b"build/")]) <= 502
    assert [one for effect in history.effects for one in effect.exceeded] == ["build"]
