"""A change belongs to the open calls that can have made it."""

from dataclasses import replace

import pytest

from playhead.workspace.blobs.pool import Pool
from playhead.workspace.call_kinds import CallKinds
from playhead.workspace.folder_compare import compare_folder
from playhead.workspace.history import FileEffect, FileHistory, WorkspaceStart
from playhead.workspace.scratch.scratch_workspace import ScratchWorkspace
from playhead.workspace.tree_listing import Change


def process(*argv: str, **facts: str) -> dict:
    return {"boundary": "process", "via": "shim", "request": {"argv": list(argv)}, **facts}


def effect(*calls: str, paths: tuple[bytes, ...]) -> FileEffect:
    changes = tuple(Change(one, None, None) for one in paths)
    return FileEffect(
        workspace=0, calls=calls, after=None, until_ns=1, changes=changes, gaps=2, ref="1:9"
    )


def parts(kinds: CallKinds, whole: FileEffect) -> list[tuple]:
    found = list(kinds.attributed(whole))
    assert sum(one.gaps for one in found) == whole.gaps
    return [(one.calls, [change.path for change in one.changes]) for one in found]


def test_a_filter_owns_only_the_files_that_its_command_line_names():
    kinds = CallKinds()
    kinds.add("1:1", process("/usr/bin/tee", "-a", "../logs/log.txt"))
    kinds.add("1:2", process("bash", "-c", "sed -i s/a/b/ a.txt"))
    kinds.add("1:3", process("grep", "x"))
    made = effect("1:1", "1:2", "1:3", paths=(b"a.txt", b"logs/log.txt"))
    assert parts(kinds, made) == [(("1:2",), [b"a.txt"]), (("1:1", "1:2"), [b"logs/log.txt"])]
    assert parts(kinds, effect("1:3", paths=(b"a.txt",))) == [((), [b"a.txt"])]


def test_a_program_that_may_write_any_file_owns_all_changes():
    kinds = CallKinds()
    kinds.add("1:1", process("make", "log.txt"))
    kinds.add("1:2", {**process("cat"), "via": "Popen"})
    made = effect("1:1", "1:2", paths=(b"a.txt",))
    assert parts(kinds, made) == [(("1:1", "1:2"), [b"a.txt"])]


def test_only_changes_of_housekeeping_alone_are_side_changes():
    kinds = CallKinds()
    kinds.add("1:1", process("git", "notes", "add", side="housekeeping"))
    kinds.add("1:2", process("make"))
    sides = [
        effect("1:1", paths=(b"a",)),
        effect("1:1", "1:2", paths=(b"a",)),
        effect(paths=(b"a",)),
    ]
    assert [next(kinds.attributed(one)).is_side for one in sides] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "is_side", "same"),
    [("note", True, True), (None, True, True), ("other", True, False), (None, False, False)],
)
def test_a_file_of_housekeeping_that_a_replay_did_not_do_may_be_there_or_not(
    tmp_path, text, is_side, same
):
    folder, file = tmp_path / "work", tmp_path / "work" / "note.txt"
    folder.mkdir()
    file.write_text("note")
    changes = tuple(compare_folder({}, str(folder)))
    history = FileHistory([], [], Pool(tmp_path / "store"))
    history.starts.append(WorkspaceStart(number=0, root=str(folder), tree="empty", facts={}))
    history._trees[0] = {}
    made = replace(effect("1:1", paths=()), changes=changes, gaps=0, is_side=is_side)
    history.effects.append(made)
    file.unlink() if text is None else file.write_text(text)
    assert ScratchWorkspace(history, str(folder)).report().same is same
