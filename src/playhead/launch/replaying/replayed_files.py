"""The workspace of a replay, inside its fence: the recorded files on top of the current ones.

Knows the fence's folders and the history of a tape; does not know how files are restored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from playhead.encoding.values import safe_str
from playhead.errors import PlayheadError
from playhead.recording.recorder import Recorder
from playhead.replay.fence.barrier import Fence, build
from playhead.replay.fence.inside import FenceNeeds
from playhead.replay.matching.taped import TapedRun, load
from playhead.replay.report.printed_output import same_text
from playhead.tape.reader import Tape
from playhead.workspace.chosen_files import OUTPUT, output_files
from playhead.workspace.files_report import FilesReport
from playhead.workspace.fork_result import ForkedFiles
from playhead.workspace.history import FileHistory, read_history
from playhead.workspace.outside_files import outside_files, restore_outside_file
from playhead.workspace.scratch.effect_server import EffectServer
from playhead.workspace.scratch.program_files import program_files
from playhead.workspace.scratch.scratch_workspace import ScratchWorkspace
from playhead.workspace.tree_listing import Tree


class ReplayedFiles:
    """Serves file changes from `start` to `stop`; then `report` compares, and `forked` has the files of a fork."""

    def __init__(
        self,
        server: EffectServer,
        spaces: list[ScratchWorkspace],
        folders: list[int],
        bases: list[Base],
    ) -> None:
        self._server = server
        self._spaces = spaces
        self._folders = folders
        self._bases = bases
        self.report: FilesReport | None = None
        self.forked: list[ForkedFiles] = []

    def start(self, recorder: Recorder) -> None:
        self._server.start(recorder)

    def stop(self) -> None:
        try:
            self._server.stop()
            found = self._server.reports
            first = next((one for one in found if one.same is not True), found[0])
            self.report = replace(
                first,
                changed=sum(one.changed for one in found),
                not_restored=tuple(path for one in found for path in one.not_restored),
            )
            for space, base in zip(self._spaces, self._bases, strict=False):
                self.forked.append(space.forked(base.tree, base.root))
        except (OSError, PlayheadError) as error:
            self.report = FilesReport(why=safe_str(error))
        for fd in self._folders:
            os.close(fd)


class Base(NamedTuple):
    """The recorded files of one workspace at the step of a fork."""

    root: str
    tree: Tree


def replayed_files(
    tape: Tape,
    home: Path,
    command: Sequence[str],
    fence: Fence,
    run: Path,
    *,
    fork_at: int | None = None,
) -> ReplayedFiles | None:
    """Restore the workspaces of a tape inside the fence. None: it has none, or they cannot be restored.

    `home` is the store with their content, `run` the folder of the replay.
    """
    if fence.kind != "namespaces":
        return None
    folders: list[int] = []
    try:
        history = read_history(tape, home)
        spaces, bases = [], []
        for start in history.starts:
            if not start.tree:
                continue
            folders.append(fence.open_folder(start.root))
            folder = f"/proc/self/fd/{folders[-1]}"
            known = history.start(start.number)
            code = set[bytes]()
            if start.only is None:
                code = program_files(
                    command,
                    start.root,
                    tape.manifest.cwd,
                    known,
                    folder,
                    pythons=history.pythons,
                )
            space = ScratchWorkspace(
                history,
                folder,
                excluded=(
                    *_inside(start.root, home, run.parent.parent, *map(Path, output_files())),
                    *_not_recorded(start.facts),
                    *_exceeded(history, start.number),
                ),
                code=frozenset(code),
                number=start.number,
                only=None if start.only is None else frozenset(map(os.fsencode, start.only)),
                is_alike=_comparer(tape, run),
            )
            space.prepare()
            spaces.append(space)
            if fork_at is not None:
                bases.append(Base(start.root, _files_before(history, tape, fork_at, start.number)))
        _restore_outside(tape, history, fence)
        if not spaces:
            return None
        # With the content in another store, the tape of a fork could not be read without that store.
        store = home if home.resolve() == run.parent.parent.resolve() else None
        server = EffectServer(str(run), spaces, store=store, is_fork=fork_at is not None)
        return ReplayedFiles(server, spaces, folders, bases)
    except (OSError, PlayheadError):
        for fd in folders:
            os.close(fd)
        return None  # a tape without its blobs replays with the current files


def _comparer(tape: Tape, run: Path) -> Callable[[bytes, bytes], bool]:
    """Return a function that compares the content of a file in both runs. The tapes are read when a file differs."""

    @cache
    def both() -> tuple[TapedRun, TapedRun]:
        return load(tape), load(Tape(run))

    return lambda before, after: same_text(*both(), before, after)


def _restore_outside(tape: Tape, history: FileHistory, fence: Fence) -> None:
    """Restore files that the program opened outside of the workspaces, such as its databases."""
    for one in outside_files(tape, history):
        with suppress(OSError):  # it is read-only there, so the program could not write it either
            fd = fence.open_folder(os.path.dirname(one.path))
            try:
                restore_outside_file(one, f"/proc/self/fd/{fd}")
            finally:
                os.close(fd)


def calls_that_changed_files(tape: Tape, home: Path) -> set[str] | None:
    """The calls whose file changes a fork restores; None: this machine or this tape cannot restore files."""
    try:
        history = read_history(tape, home)
        if not any(one.tree for one in history.starts):
            return None
        for one in history.starts:
            history.start(one.number)
        build(FenceNeeds(own=()), ("namespaces",)).abandon()
    except (OSError, PlayheadError):
        return None
    return {call for effect in history.effects if effect.changes for call in effect.calls}


def _files_before(history: FileHistory, tape: Tape, step: int, number: int) -> Tree:
    calls = load(tape).calls
    if step > len(calls):
        return history.at(None, number)
    numbers = {one.ref: one.number for one in calls}
    return history.before(step, numbers, calls[step - 1].event.mono, number)


def _not_recorded(facts: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield paths in the workspace that were left out: the store, and files that received the command's output."""
    if isinstance(facts.get("store"), str):
        yield os.fsencode(facts["store"])
    for one in facts.get("left_out") or ():
        if isinstance(one, dict) and one.get("why") == OUTPUT:
            yield os.fsencode(str(one.get("path")))


def _exceeded(history: FileHistory, number: int) -> Iterator[bytes]:
    """Return ignored folders that outgrew their limits during the run: it is unknown which part of them is on the
    tape.
    """
    for effect in history.effects:
        if effect.workspace == number:
            yield from map(os.fsencode, effect.exceeded)


def _inside(root: str, *stores: Path) -> tuple[bytes, ...]:
    """Return stores and files with our own output that are in the workspace, relative to it."""
    found = {os.path.realpath(one) for one in stores}
    return tuple(
        os.fsencode(os.path.relpath(one, root)) for one in found if one.startswith(root + "/")
    )
