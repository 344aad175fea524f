"""The files of a replay: restored from the tape before it starts, changed by each served call as in the recorded
run, and compared with the recorded files at its end. Knows one workspace and its history; does not know mounts.

The given folder belongs to the replay: an overlay, whose changes vanish. The program's own source stays as it is now
(see `program_files`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from playhead.encoding.values import safe_str
from playhead.errors import PlayheadError
from playhead.workspace.blobs.stable_read import read_file
from playhead.workspace.files_report import FilesReport
from playhead.workspace.folder_compare import compare_folder, is_now
from playhead.workspace.fork_result import ForkedFiles, forked_files
from playhead.workspace.history import FileEffect, FileHistory, apply_changes
from playhead.workspace.restore import apply_effects
from playhead.workspace.scratch.database_compare import (
    LOG,
    is_database,
    same_rows,
    with_log,
)
from playhead.workspace.scratch.live_files import ScratchFolder
from playhead.workspace.scratch.open_files import open_for_writing
from playhead.workspace.tree_listing import Change, Tree, shown

# Larger files are compared byte by byte only.
_LARGEST_TEXT = 4 * 1024 * 1024


class MadeChanges(NamedTuple):
    """Changes of a recorded effect that a replay has made in one workspace."""

    number: int
    effect: FileEffect
    changes: tuple[Change, ...]


class ScratchWorkspace:
    """One workspace of a replay. `folder` is the path under which this process reaches it."""

    def __init__(
        self,
        history: FileHistory,
        folder: str,
        *,
        excluded: tuple[bytes, ...] = (),
        code: frozenset[bytes] = frozenset(),
        number: int = 0,
        only: frozenset[bytes] | None = None,
        is_alike: Callable[[bytes, bytes], bool] = lambda _before, _after: False,
    ) -> None:
        """`only`: the names of single files, if the folder is not a workspace. `is_alike`: whether recorded and
        replayed content differ only in values that no program chooses.
        """
        self._history = history
        self._only = only
        self._is_alike = is_alike
        self._folder = folder
        self._excluded = excluded
        self._number = number
        self._effects = [
            one for one in history.effects if one.workspace == number and one.all_changes
        ]
        changed = {change.path for one in self._effects for change in one.changes}
        # A file that the run itself changed is data, whatever its name.
        self._code = code - changed
        self._changed = len({one for one in changed if not one.startswith(b".git/")})
        self._served: set[str] = set()
        self._waiting = [(at, one) for at, one in enumerate(self._effects) if one.served_with]
        self._root = next((one.root for one in history.starts if one.number == number), folder)
        # The effect from which each path has its content.
        self._latest: dict[bytes, int] = {}
        # Changes that were made before all calls that share them were served: (effect, path).
        self._early: set[tuple[int, bytes]] = set()
        self._code_differs: list[str] = []
        self._unused_edits: tuple[str, ...] = ()
        # Paths whose recorded content is not on the tape (secrets, large files): the replay uses the current files.
        self._not_restored: set[bytes] = set()
        # New folders that could not be removed, because they hold files that a snapshot leaves out.
        self._kept_folders: set[bytes] = set()
        self.problem: str | None = None

    @property
    def calls(self) -> set[str]:
        """The calls that changed files."""
        return {one for _, effect in self._waiting for one in effect.served_with}

    @property
    def shared_calls(self) -> set[str]:
        """Return the calls whose changes may belong to a call that another process made at the same time."""
        groups = (set(effect.served_with) for _, effect in self._waiting)
        return {
            one
            for calls in groups
            if len({each.partition(":")[0] for each in calls}) > 1
            for one in calls
        }

    def prepare(self, until: int | None = 0) -> None:
        """Restore the files of the start of the run, or of a later moment."""
        wanted = self._history.at(until, self._number)
        back, special = list[Change](), list[bytes]()
        found = compare_folder(
            wanted, self._folder, self._excluded, only=self._only, special=special.append
        )
        self._remove_special(special)
        for one in found:
            if one.path in self._code:
                self._code_differs.append(shown(one.path))
            else:
                back.append(Change(one.path, one.after, one.before))
        self._unused_edits = self._edited(back)
        self._apply((*back, *self._times_of(wanted)))
        self._kept_folders = self._folders_that_stay(back)

    def _times_of(self, wanted: Tree) -> Iterator[Change]:
        """Yield the files whose times a call of the run changed. Their times count; those of other files are not
        restored, because an overlay copies a file to change its time.
        """
        for path in {one.path for effect in self._effects for one in effect.touched}:
            if (entry := wanted.get(path)) is not None:
                yield Change(path, entry, entry)

    def _remove_special(self, paths: list[bytes]) -> None:
        """Remove sockets, pipes and devices that the recorded run did not find: its program may create them again."""
        start = next((one for one in self._history.starts if one.number == self._number), None)
        named = () if start is None else start.left_out
        if named is None:
            return
        for path in paths:
            if shown(path) not in named:
                with suppress(OSError):
                    os.unlink(os.path.join(os.fsencode(self._folder), path))

    def _folders_that_stay(self, back: list[Change]) -> set[bytes]:
        """Return folders that are newer than the recording and have files that a snapshot leaves out.

        Python writes `__pycache__` into the folders of a new package: a folder with nothing else in it is removed.
        """
        new = {
            one.path for one in back if one.after is None and one.before and one.before.is_folder
        }
        kept = set[bytes]()
        for path in sorted(new, reverse=True):
            full = os.path.join(os.fsencode(self._folder), path)
            with suppress(FileNotFoundError):
                if set(os.listdir(full)) <= {b"__pycache__"}:
                    shutil.rmtree(full, ignore_errors=True)
                if os.path.lexists(full):
                    kept.add(path)
        return kept

    def _edited(self, back: list[Change]) -> tuple[str, ...]:
        """Return files that were edited since the recording: they differ from its start and from its end.

        Empty if the workspace is gone: then the user cannot have meant a current file. Edited files come before new
        and deleted ones, because a report names only the first few.
        """
        if not any(one.before is not None and one.before.is_file for one in back):
            return ()
        end = self._history.at(None, self._number)
        found = [
            one
            for one in back
            if not (one.path.startswith(b".git/") or _is_folder(one) or _is_as_left(one, end))
            and (one.after is None or one.after.is_stored)
        ]
        found.sort(key=lambda one: (one.before is None or one.after is None, one.path))
        return tuple(shown(one.path) for one in found)

    @property
    def scratch_folder(self) -> ScratchFolder:
        return ScratchFolder(
            self._number,
            self._root,
            self._folder,
            self._history.start(self._number),
            self._excluded,
            self._only,
            frozenset({*self._code, *self._not_restored, *self._kept_folders}),
        )

    def serve(self, call: str) -> list[MadeChanges]:
        """Make the changes of a call that was answered from the tape, and return them."""
        self._served.add(call)
        due = [one for one in self._waiting if self._served.issuperset(one[1].served_with)]
        if not due:
            return []
        self._waiting = [one for one in self._waiting if one not in due]
        # The program writes to files that it has open (a database, a log) as it did during the recorded call. Newer
        # tapes have such changes in separate effects.
        is_known = all(effect.own_apart for _, effect in due)
        own = set() if is_known else open_for_writing(self._root)
        return [self._make(at, effect, effect.all_changes, own) for at, effect in due]

    def _make(
        self, at: int, effect: FileEffect, changes: Iterable[Change], own: set[bytes]
    ) -> MadeChanges:
        made = tuple(self._to_apply(at, changes, own))
        self._apply(made)
        return MadeChanges(self._number, effect, made)

    def awaits_partners(self, call: str) -> bool:
        """Return whether changes of a served call have not been made, because other calls share them."""
        return any(call in effect.served_with for _, effect in self._waiting)

    def finish(self, call: str) -> list[MadeChanges]:
        """Make the changes that an ended served call shares with calls that have not been served.

        Nothing orders the calls of different processes: the program may read now what this call wrote, and the other
        call may come much later. If a path is not in the state before the change, the change belongs to the other
        call, whose process is not that far yet: such a change waits for that call.
        """
        root, made = os.fsencode(self._folder), []
        for at, effect in self._waiting:
            if call in effect.served_with:
                ready = [one for one in effect.all_changes if is_now(root, one.path, one.before)]
                made.append(self._make(at, effect, ready, set()))
                self._early.update((at, one.path) for one in ready)
        return made

    def _to_apply(self, at: int, changes: Iterable[Change], own: set[bytes]) -> Iterator[Change]:
        """Yield the changes of effect `at` that still have to be made. Concurrent calls may be answered in another
        order than that of their changes: newer changes stay.
        """
        for one in changes:
            if (at, one.path) in self._early:
                continue
            if one.path not in own and self._latest.get(one.path, -1) <= at:
                self._latest[one.path] = at
                yield one

    def report(self) -> FilesReport:
        """Compare the files with the end of the recording. Called at the end."""
        report = FilesReport(
            changed=self._changed,
            gaps=self._history.gaps,
            code=tuple(sorted(self._code_differs)),
            unused_edits=self._unused_edits,
            not_restored=tuple(shown(one) for one in sorted(self._not_restored)),
        )
        if self.problem is not None:
            return replace(report, why=self.problem)
        found = self._differing(self._effects)
        made = self._effects_without_unmade_sides()
        if found and len(made) < len(self._effects):
            # Either state is right: the agent itself may have changed the file while its housekeeping ran.
            others = set(self._differing(made))
            found = [one for one in found if one in others]
        if found and self._history.gaps:
            # The end of the recording is not known for certain.
            return replace(report, why=f"{self._history.gaps:,} changes were not recorded")
        return replace(report, same=not found, differing=tuple(found))

    def _is_same_text(self, change: Change) -> bool:
        """Return whether a file differs only in values that no program chooses: process ids in a log."""
        then, now = change.before, change.after
        if then is None or now is None or not (then.is_file and then.is_stored and now.is_file):
            return False
        try:
            before = self._history.content(then, self._number)
            path = os.path.join(os.fsencode(self._folder), change.path)
            after = read_file(path).data if now.size <= _LARGEST_TEXT else b""
        except (OSError, PlayheadError):
            return False
        is_small = len(before) <= _LARGEST_TEXT and now.size <= _LARGEST_TEXT
        is_text = is_small and not is_database(before)
        return is_text and then.mode == now.mode and self._is_alike(before, after)

    def _effects_without_unmade_sides(self) -> list[FileEffect]:
        """Return the effects except those of housekeeping that this replay did not do. Agents do it on timers, also in
        the repository: Qwen Code adds a note to a commit, or does not.
        """
        unmade = {at for at, effect in self._waiting if effect.is_side}
        return [one for at, one in enumerate(self._effects) if at not in unmade]

    def _differing(self, effects: Iterable[FileEffect]) -> list[str]:
        """Return the files that differ from those that these effects leave."""
        wanted = dict(self._history.start(self._number))
        for effect in effects:
            apply_changes(wanted, effect.all_changes)
        return [
            shown(one.path)
            for one in compare_folder(wanted, self._folder, self._excluded, only=self._only)
            if one.path not in self._code
            and one.path not in self._not_restored
            and not (one.path in self._kept_folders and one.before is None)
            and not self._is_same_text(one)
            and not self._is_same_database(one, wanted)
        ]

    def _is_same_database(self, change: Change, wanted: Tree) -> bool:
        """Return whether a file is a database, or the log of one, that differs only in timestamps of SQLite's own clock
        or in its division into database and log. SQLite empties the log when the last connection is closed, which a
        program may leave to the garbage collector.
        """
        path = change.path.removesuffix(LOG)
        full = os.path.join(os.fsencode(self._folder), path)
        try:
            before = self._content(wanted, path)
            if before is None or not is_database(before):
                return False
            after = with_log(read_file(full).data, _content_now(full + LOG))
            before = with_log(before, self._content(wanted, path + LOG))
        except (OSError, PlayheadError):
            return False
        return is_database(after) and same_rows(before, after)

    def _content(self, tree: Tree, path: bytes) -> bytes | None:
        entry = tree.get(path)
        if entry is None or not (entry.is_file and entry.is_stored):
            return None
        return self._history.content(entry, self._number)

    def forked(self, base: Tree, root: str) -> ForkedFiles:
        """Return the changes that a fork which started from `base` would make to the real folder. Called at its end."""
        return forked_files(
            self._history,
            base,
            self._folder,
            root,
            number=self._number,
            excluded=self._excluded,
            code=self._code,
        )

    def _apply(self, changes: tuple[Change, ...]) -> None:
        kept = tuple(one for one in changes if one.path not in self._code)
        try:
            missing = apply_effects(
                self._folder,
                kept,
                lambda entry: self._history.content(entry, self._number),
                keep_inodes=True,
            )
            self._not_restored.update(one.path for one in missing)
        except (OSError, PlayheadError) as error:
            self.problem = f"files could not be restored ({safe_str(error)})"


def _is_folder(change: Change) -> bool:
    return all(one is None or one.is_folder for one in (change.before, change.after))


def _is_as_left(change: Change, end: Tree) -> bool:
    """Return whether the current file is the one that the recorded run left behind."""
    left = end.get(change.path)
    return left is None if change.before is None else change.before.same_as(left)


def _content_now(path: bytes) -> bytes | None:
    return read_file(path).data if os.path.exists(path) else None
