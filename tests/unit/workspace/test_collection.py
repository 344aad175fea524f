"""Contents that no run needs any more are deleted; everything else stays."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.unit.workspace.conftest import Session, fingerprint

from playhead.tape.reader import Tape
from playhead.workspace.blob_collection import collect, note_undo
from playhead.workspace.blobs.pool import Pool, PoolWriter
from playhead.workspace.history import read_history
from playhead.workspace.restore import restore_tree


def recorded(tmp_path: Path, project: Path, name: str, script: str) -> Session:
    session = Session(tmp_path / "home", project, name)
    session.call(script)
    session.stop()
    session.end()
    return session


def size(home: Path) -> int:
    return sum(one.stat().st_size for one in home.rglob("*.pack"))


def test_a_run_keeps_its_contents_when_another_one_goes(tmp_path: Path, project: Path) -> None:
    noise = "head -c 300000 /dev/urandom > noise{n}.bin; rm -f noise{m}.bin"
    recorded(tmp_path, project, "r1", noise.format(n=1, m=0))
    second = recorded(tmp_path, project, "r2", noise.format(n=2, m=1))
    home = tmp_path / "home"
    before = size(home)
    expected = fingerprint(project)
    shutil.rmtree(home / "runs" / "r1")
    # The second run starts with the first one's file: nothing may go.
    assert collect(home) == 0
    history = read_history(Tape(second.recorder.run), home)
    restore_tree(history.at(None), str(tmp_path / "out"), history.content)
    assert fingerprint(tmp_path / "out") == expected
    assert size(home) == before


def test_contents_go_with_their_last_run(tmp_path: Path, project: Path) -> None:
    recorded(tmp_path, project, "r1", "head -c 300000 /dev/urandom > noise.bin")
    recorded(tmp_path, project, "r2", "rm noise.bin")
    recorded(tmp_path, project, "r3", "echo x > small.txt")
    home = tmp_path / "home"
    for name in ("r1", "r2"):
        shutil.rmtree(home / "runs" / name)
    assert collect(home) > 300_000
    history = read_history(Tape(home / "runs" / "r3"), home)
    assert restore_tree(history.at(None), str(tmp_path / "out"), history.content) == []
    assert (tmp_path / "out" / "small.txt").read_text() == "x\n"
    shutil.rmtree(home / "runs" / "r3")
    collect(home)
    assert size(home) == 0


def test_nothing_is_deleted_while_a_run_is_in_progress(tmp_path: Path, project: Path) -> None:
    session = Session(tmp_path / "home", project)
    writer = PoolWriter(Pool(tmp_path / "home"), "other")
    name = writer.put(os.urandom(1000))
    writer.close()
    assert collect(tmp_path / "home") == 0
    assert name in Pool(tmp_path / "home")
    session.stop()


def test_an_undo_keeps_its_contents(tmp_path: Path, project: Path) -> None:
    home = tmp_path / "home"
    session = recorded(tmp_path, project, "r1", "echo x > small.txt")
    tree = session.tape.states[0].tree
    note_undo(home, tree)
    shutil.rmtree(home / "runs" / "r1")
    (home / "runs").mkdir(exist_ok=True)
    collect(home)
    assert Pool(home).read(tree)
