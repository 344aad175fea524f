"""The files of a replay: restored from the tape before it starts, changed by each served call as in the recorded
run, and compared with the recorded files at its end. Knows one workspace and its history; does not know mounts.

The given folder belongs to the replay: an overlay, whose changes vanish. The program's own source stays as it is now
(see `program_files`).
"""

from __future__ import annotations

import os
import select
import shutil
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from playhead.clock import mono_ns
from playhead.encoding.values import safe_str
from playhead.errors import PlayheadError
from playhead.workspace.blobs.stable_read import read_file
from playhead.workspace.database_compare import is_database, same_rows
from playhead.workspace.files_report import FilesReport
from playhead.workspace.folder_compare import compare_folder, is_now
from playhead.workspace.fork_result import ForkedFiles, forked_files
from playhead.workspace.history import FileHistory, apply_changes
from playhead.workspace.open_files import open_for_writing
from playhead.workspace.restore import apply_effects
from playhead.workspace.tree_listing import Change, Tree, shown
from playhead.workspace.watch import call_marks, inotify
from playhead.workspace.watch.inotify import Inotify, parse_events

# How long a served call that has ended waits for calls of other processes that were open at the same time, and how
# often the timeout is checked.
_LONGEST_PARTNERS_NS = 500_000_000
_LOOK_MS = 20


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
    ) -> None:
        """`only`: the names of single files, if the folder is not a workspace."""
        self._history = history
        self._only = only
        self._folder = folder
        self._excluded = excluded
        self._number = number
        self._effects = [one for one in history.effects if one.workspace == number and one.changes]
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
        back = []
        for one in compare_folder(wanted, self._folder, self._excluded, only=self._only):
            if one.path in self._code:
                self._code_differs.append(shown(one.path))
            else:
                back.append(Change(one.path, one.after, one.before))
        self._unused_edits = self._edited(back)
        self._apply(tuple(back))
        self._kept_folders = self._folders_that_stay(back)

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

    def serve(self, call: str) -> None:
        """Make the changes of a call that was answered from the tape."""
        self._served.add(call)
        due = [one for one in self._waiting if self._served.issuperset(one[1].served_with)]
        if not due:
            return
        self._waiting = [one for one in self._waiting if one not in due]
        # The program writes to files that it has open (a database, a log) as it did during the recorded call. Newer
        # tapes have such changes in separate effects.
        is_known = all(effect.own_apart for _, effect in due)
        own = set() if is_known else open_for_writing(self._root)
        for at, effect in due:
            self._apply(tuple(self._to_apply(at, effect.changes, own)))

    def awaits_partners(self, call: str) -> bool:
        """Return whether changes of a served call have not been made, because other calls share them."""
        return any(call in effect.served_with for _, effect in self._waiting)

    def finish(self, call: str) -> None:
        """Make the changes that an ended served call shares with calls that have not been served.

        Nothing orders the calls of different processes: the program may read now what this call wrote, and the other
        call may come much later. If a path is not in the state before the change, the change belongs to the other
        call, whose process is not that far yet: such a change waits for that call.
        """
        root = os.fsencode(self._folder)
        for at, effect in self._waiting:
            if call in effect.served_with:
                ready = [one for one in effect.changes if is_now(root, one.path, one.before)]
                self._apply(tuple(self._to_apply(at, ready, set())))
                self._early.update((at, one.path) for one in ready)

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
        wanted = dict(self._history.start(self._number))
        for effect in self._effects:
            apply_changes(wanted, effect.changes)
        found = [
            shown(one.path)
            for one in compare_folder(wanted, self._folder, self._excluded, only=self._only)
            if one.path not in self._code
            and one.path not in self._not_restored
            and not (one.path in self._kept_folders and one.before is None)
            and not self._is_same_database(one)
        ]
        if found and self._history.gaps:
            # The end of the recording is not known for certain.
            return replace(report, why=f"{self._history.gaps:,} changes were not recorded")
        return replace(report, same=not found, differing=tuple(found))

    def _is_same_database(self, change: Change) -> bool:
        """Return whether a file is a database that differs only in timestamps of SQLite's own clock."""
        then, now = change.before, change.after
        if then is None or now is None or not (then.is_file and then.is_stored and now.is_file):
            return False
        try:
            before = self._history.content(then, self._number)
            path = os.path.join(os.fsencode(self._folder), change.path)
            after = read_file(path).data if is_database(before) else b""
        except (OSError, PlayheadError):
            return False
        return is_database(after) and same_rows(before, after)

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


class EffectServer:
    """Applies the changes of served calls when the replayed processes mark them. Runs in a thread of the launcher."""

    def __init__(self, run: str, spaces: list[ScratchWorkspace]) -> None:
        self._spaces = spaces
        self._folder = os.path.join(run, call_marks.FOLDER)
        os.mkdir(self._folder, 0o700)
        # The marks of ended served calls that wait for others: name, call, and the time limit.
        self._held: list[tuple[str, str, int]] = []
        for name, calls in (
            (call_marks.SERVED, {call for one in spaces for call in one.calls}),
            (call_marks.SHARED, {call for one in spaces for call in one.shared_calls}),
        ):
            with open(os.path.join(self._folder, name), "w", encoding="utf-8") as file:
                file.write("\n".join(sorted(calls)))
        self._events = Inotify()
        self._events.add(os.fsencode(self._folder))
        self._wake, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._work, daemon=True, name="playhead-files")
        self.reports: list[FilesReport] = []

    def start(self, recorder: object) -> None:
        self._thread.start()

    def stop(self) -> None:
        os.close(self._woken)
        if self._thread.is_alive():
            self._thread.join()
        self._events.close()
        os.close(self._wake)
        with suppress(OSError):
            for name in os.listdir(self._folder):
                os.unlink(os.path.join(self._folder, name))
            os.rmdir(self._folder)
        self.reports = [one.report() for one in self._spaces]

    def _work(self) -> None:
        poll = select.poll()
        poll.register(self._events.fd, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            ready = dict(poll.poll(_LOOK_MS if self._held else None))
            for event in parse_events(self._events.read()):
                if event.mask & inotify.CREATE and b"." in event.name:
                    self._heed(os.fsdecode(event.name))
            self._release()
            if self._wake in ready:
                return

    def _answer(self, name: str) -> None:
        with suppress(OSError):
            address = os.readlink(os.path.join(self._folder, name))
            if address != call_marks.NO_ANSWER:
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
                    line.sendto(b".", socket.MSG_DONTWAIT, b"\0" + os.fsencode(address))

    def _heed(self, name: str) -> None:
        kind, _, rest = name.partition(".")
        if kind == call_marks.APPLY:
            call = rest.partition(".")[2]
            for one in self._spaces:
                one.serve(call)
        elif kind == call_marks.FINISH:
            until = mono_ns() + _LONGEST_PARTNERS_NS
            self._held.append((name, rest.partition(".")[2], until))
            return
        else:
            self._answer(name)  # a live call starts or ends: nothing has to be stored for it
        self._remove(name)

    def _release(self) -> None:
        """Let calls return that waited for others: those have been served, or did not come in time."""
        held, self._held = self._held, []
        for name, call, until in held:
            sharing = [one for one in self._spaces if one.awaits_partners(call)]
            if sharing and mono_ns() < until:
                self._held.append((name, call, until))
                continue
            for one in sharing:
                one.finish(call)
            self._remove(name)

    def _remove(self, name: str) -> None:
        # The mark is removed when its changes are made: the process waits for the removal.
        with suppress(OSError):
            os.unlink(os.path.join(self._folder, name))
