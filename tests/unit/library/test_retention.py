from pathlib import Path

import pytest

from playhead.library.catalogue import Entry, entry_at
from playhead.library.retention import Doomed, RetentionRules, Sized, plan, remove, size_of
from playhead.tape.manifest import Manifest

DAY = 86_400_000_000_000
NOW = 100 * DAY


def run(name, days, *, size=10, status="ok", keep=False):
    manifest = Manifest(run=name, status=status, started_ns=NOW - days * DAY, keep=keep)
    return Sized(entry=Entry(path=Path(name), manifest=manifest, status=status), bytes=size)


RUNS = [
    run("a", 1),
    run("b", 2),
    run("c", 3, status="running"),
    run("d", 4, keep=True),
    run("e", 5),
]


@pytest.mark.parametrize(
    ("rules", "gone"),
    [
        (RetentionRules(), []),
        (RetentionRules(older_than_ns=DAY * 3 // 2), ["e", "b"]),
        (RetentionRules(keep=2), ["e"]),
        (RetentionRules(keep=0), ["e", "b", "a"]),
        (RetentionRules(max_bytes=50), []),
        (RetentionRules(max_bytes=45), ["e"]),
        (RetentionRules(max_bytes=0), ["e", "b", "a"]),
        (RetentionRules(max_bytes=0, keep=1), ["e", "b"]),
        (RetentionRules(older_than_ns=DAY // 2, keep=2), ["e"]),
        (RetentionRules(older_than_ns=DAY * 9 // 2, max_bytes=35), ["e", "b"]),
    ],
)
def test_the_plan_follows_the_rules(rules, gone):
    assert [one.entry.id for one in plan(RUNS, rules, NOW)] == gone


def test_the_plan_says_which_rule_it_was():
    told = plan(RUNS, RetentionRules(older_than_ns=DAY * 9 // 2, max_bytes=35), NOW)
    assert [one.why for one in told] == ["too old", "too much"]


def doomed(path):
    return Doomed(entry=entry_at(path), bytes=size_of(path), why="too old")


def test_a_run_that_was_kept_after_the_plan_was_made_stays(forge, store):
    path = forge("run").end()
    planned = doomed(path)
    (path / "manifest.json").write_text(
        (path / "manifest.json").read_text().replace('"keep": false', '"keep": true')
    )
    assert list(remove(store, [planned])) == []
    assert path.exists()


def test_a_run_that_somebody_else_deleted_is_no_error(forge, store):
    gone, there = forge("gone").end(), forge("there").end()
    planned = [doomed(gone), doomed(there)]
    gone.rename(store / "elsewhere")
    assert [one.entry.id for one in remove(store, planned)] == ["there"]


def test_an_interrupted_removal_leaves_no_half_of_a_run(forge, store):
    planned = [doomed(forge(name).end()) for name in ("one", "two", "three")]
    removing = remove(store, planned)
    next(removing)
    removing.close()
    assert sorted(path.name for path in (store / "runs").iterdir()) == ["three", "two"]
    assert list(store.glob(".trash*")) == []


def test_a_size_counts_blobs_and_follows_no_links(tmp_path):
    (tmp_path / "blobs" / "ab").mkdir(parents=True)
    (tmp_path / "blobs" / "ab" / "abc").write_bytes(b"x" * 500)
    (tmp_path / "tape-1.jsonl").write_bytes(b"y" * 30)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert 530 <= size_of(tmp_path) < 1000
    assert size_of(tmp_path / "nowhere") == 0
