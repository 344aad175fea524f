"""A session of shell commands: the tree after every one of them comes back byte by byte."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.unit.workspace.conftest import Session, fingerprint

from playhead.workspace.history import FileHistory
from playhead.workspace.restore import restore_tree
from playhead.workspace.tree_listing import FileEntry

SCRIPTS = (
    "sed -i 's/line 7 /LINE 7 /' src/m{n}.py",
    "mv src/m{n}.py src/moved{i}.py",
    "git add -A && git commit -qm step{i}",
    "printf 'a\\nb {i}\\n' > new{i}.txt",
    "echo {i} >> notes.txt && git stash -u -q",
    "git stash pop -q",
    "chmod 755 src/m{n}.py; ln -sfn src/m{n}.py link",
    "rm -rf src/d && mkdir -p src/d/e/f && cp src/*.py src/d/e/ && mv src/d/e src/d/g",
    "cat > src/here{i}.py <<'END'\nprint({i})\nEND",
    "rm -f new*.txt; rmdir empty; mkdir empty",
    "git checkout -q -b b{i} && git reset -q --hard HEAD",
    "mv src other && mv other src; truncate -s 100 src/m{n}.py; dd if=/dev/zero of=z bs=70000 count=1",
)


STEPS = 120
# Restoring takes most of the time: one step of each kind is written to a folder, the others are compared in memory.
RESTORED = range(0, STEPS, len(SCRIPTS) - 1)


def test_the_tree_comes_back_at_each_of_120_steps(session: Session, tmp_path: Path) -> None:
    taken: list[tuple[int, dict[bytes, tuple[int, bytes]]]] = []
    for step in range(STEPS):
        script = SCRIPTS[step % len(SCRIPTS)].format(n=(step * 7) % 20, i=step)
        session.call(script)
        taken.append((_now(), fingerprint(session.folder)))
    history = session.stop()
    assert history.gaps == 0
    content = functools.cache(history.content)
    wrong = []
    for step, (moment, expected) in enumerate(taken):
        tree = history.at(moment)
        found = {path: _restored(entry, content) for path, entry in tree.items()}
        if found == expected and step in RESTORED:
            target = tmp_path / f"restored-{step}"
            assert restore_tree(tree, str(target), content) == []
            found = fingerprint(target)
        if found != expected:
            wrong.append((step, _difference(found, expected)))
    assert wrong == []


def _restored(entry: FileEntry, content: Callable[[FileEntry], bytes]) -> tuple[int, bytes]:
    return entry.mode, content(entry) if entry.is_file else entry.target


def test_each_change_is_attributed_to_the_call_that_made_it(session: Session) -> None:
    first = session.call("echo 1 > one.txt")
    session.shell("echo 2 > two.txt")
    third = session.call("echo 3 > one.txt")
    history = session.stop()
    assert _who(history) == [
        ((first,), [b"one.txt"]),
        ((), [b"two.txt"]),
        ((third,), [b"one.txt"]),
    ]


def test_calls_at_the_same_time_share_their_changes(session: Session) -> None:
    session.marks.start("1:1")
    session.shell("echo 1 > a.txt")
    session.marks.start("1:2")
    session.shell("echo 1 > b.txt")
    session.marks.end("1:1")
    session.shell("echo 1 > c.txt")
    session.marks.end("1:2")
    assert _who(session.stop()) == [
        (("1:1",), [b"a.txt"]),
        (("1:1", "1:2"), [b"b.txt"]),
        (("1:2",), [b"c.txt"]),
    ]


def _who(history: FileHistory) -> list[tuple[tuple[str, ...], list[bytes]]]:
    return [(one.calls, [change.path for change in one.changes]) for one in history.effects]


def _difference(found: Mapping[bytes, object], expected: Mapping[bytes, object]) -> list[bytes]:
    paths = sorted(found.keys() | expected.keys())
    return [path for path in paths if found.get(path) != expected.get(path)][:5]


def _now() -> int:
    from playhead import clock

    return clock.mono_ns()
