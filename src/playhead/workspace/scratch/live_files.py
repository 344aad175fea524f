"""Record the files of a fork, or of a replay with live calls: changes that are served from the tape as they are made,
and changes by live calls, which are found by scanning.

Knows the scratch workspaces of a replay and its recorder; does not know marks or mounts. Nothing is recorded before the
first live call: the files of a replay without live calls are those of its tape.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from playhead import clock, events
from playhead.encoding.values import safe_str
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.workspace.blobs.pool import PoolWriter
from playhead.workspace.capture import Capture
from playhead.workspace.chosen_files import ChosenFiles
from playhead.workspace.history import FileEffect, apply_changes
from playhead.workspace.snapshot import WorkspaceState
from playhead.workspace.tree_listing import Change, FileEntry, Tree, encode_listing
from playhead.workspace.watch.effect_events import ChangeOrigin, effect_events
from playhead.workspace.watch.effects import Effects

# Scanning may take a tenth of the time: in a large workspace several calls share a scan. A scan that took less than
# this, by the clock of the processor, is repeated for each call.
_SCAN_SHARE = 10
_SHORT_NS = 30_000_000


class ScratchFolder(NamedTuple):
    """A workspace of a replay: where it was recorded, and the folder in which the replay has it."""

    number: int
    root: str
    folder: str
    # The files at the start of the recording.
    start: Tree
    excluded: tuple[bytes, ...]
    only: frozenset[bytes] | None
    # Paths that are as they are now, not as they were recorded: source of the program, and secrets.
    current: frozenset[bytes]


class LiveFiles:
    """Puts files on the tape of a fork from `begin` to `finish`. Recording fails open: no failure reaches the fork."""

    def __init__(self, writer: PoolWriter, recorder: Recorder) -> None:
        self._writer = writer
        self._recorder = recorder
        self._all: dict[int, Effects] = {}
        # Served changes before the first live call: the workspace, its changes, and their origin.
        self._served: list[tuple[int, list[Change], ChangeOrigin]] = []
        # Call of the original → the same call of this run.
        self._refs: dict[str, str] = {}
        self._open: set[str] = set()
        # Every call that was open at some time since the last scan.
        self._group: set[str] = set()
        self._last_ended: str | None = None
        self._last_moment = 0
        self._scanned_ns = self._scan_took_ns = 0
        self._is_begun = self._is_broken = False

    def note_call(self, original: str, ref: str) -> None:
        self._refs[original] = ref

    def serve(
        self, number: int, effect: FileEffect, changes: Sequence[Change], moment: int
    ) -> None:
        """Record the changes of a call that was answered from the tape."""
        calls = sorted(self._refs[one] for one in effect.calls if one in self._refs)
        one = number, list(changes), ChangeOrigin(calls, None, None, moment, {})
        if self._is_begun:
            self._record_served(*one)
        else:
            self._served.append(one)

    def start_call(self, call: str, moment: int, folders: Sequence[ScratchFolder]) -> None:
        """A live call starts. The first one begins the recording."""
        self._begin(folders)
        self._settle(moment, before=call)
        self._open.add(call)
        self._group.add(call)

    def end_call(self, call: str, moment: int) -> None:
        is_settled = self._settle(moment)
        self._open.discard(call)
        self._last_ended, self._last_moment = call, moment
        if is_settled:
            self._group.discard(call)

    def finish(self, folders: Sequence[ScratchFolder], *, is_fork: bool) -> None:
        """Record the last changes: the program has ended. `is_fork`: also without a live call."""
        if is_fork:
            self._begin(folders)
        self._scanned_ns = 0
        # A checkout of the last step has its changes, even if they are found only now.
        is_over = bool(self._group) and not self._open
        self._settle(self._last_moment if is_over else clock.mono_ns())
        if self._is_begun:
            self._writer.close()

    def _begin(self, folders: Sequence[ScratchFolder]) -> None:
        if self._is_begun or self._is_broken:
            return
        self._is_begun = True
        try:
            for one in folders:
                self._begin_one(one)
            for number, changes, origin in self._served:
                self._record_served(number, changes, origin)
            for effects in self._all.values():
                _note_stamps(effects.state)
        except Exception as error:  # noqa: BLE001  recording fails open
            self._fail(error)
        self._served = []

    def _begin_one(self, one: ScratchFolder) -> None:
        root = os.fsencode(one.folder)
        excluded = tuple(os.path.join(root, path) for path in one.excluded)
        selection = ChosenFiles(root, excluded, only=one.only, recorded=one.start)
        objects = {
            path: bytes.fromhex(entry.git_object)
            for path, entry in one.start.items()
            if entry.git_object is not None
        }
        redactor = self._recorder.redactor
        capture = Capture(
            root,
            self._writer,
            secrets=lambda: () if redactor is None else redactor.values,
            tracked=lambda: objects,
        )
        # The repository on the tape has them.
        capture.objects = set(objects.values())
        state = WorkspaceState(selection, capture, entries=dict(one.start))
        for path in sorted(one.current):
            _take_current(state, path)
        capture.left_out = []
        state.tree = self._writer.put(encode_listing(state.entries))
        data = {
            "workspace": one.number,
            "root": one.root,
            "tree": state.tree,
            "entries": len(state.entries),
            "bytes": sum(entry.size for entry in state.entries.values()),
            "git": bool(objects),
            "scanned": "the files of a fork are found by scanning",
        }
        if one.only is not None:
            data["only"] = sorted(os.fsdecode(name) for name in one.only)
        self._recorder.append(NewEvent(events.WORKSPACE, data, redacted=True))
        self._all[one.number] = Effects(state)

    def _record_served(self, number: int, changes: list[Change], origin: ChangeOrigin) -> None:
        if (effects := self._all.get(number)) is not None:
            apply_changes(effects.state.entries, changes)
            for one in changes:
                effects.state.stamps.pop(one.path, None)
            self._record(number, changes, origin)

    def _is_late(self) -> bool:
        since = clock.mono_ns() - self._scanned_ns
        return self._scan_took_ns > _SHORT_NS and since < self._scan_took_ns * _SCAN_SHARE

    def _settle(self, moment: int, before: str | None = None) -> bool:
        """Record the changes so far, unless the last scan was just before. Return whether they are recorded."""
        if not self._is_begun or self._is_broken or self._is_late():
            return False
        started = clock.thread_cpu_ns()
        origin = ChangeOrigin(sorted(self._group), self._last_ended, before, moment, {})
        try:
            for number, effects in self._all.items():
                effects.scan()
                effects.look()
                # Files that the replay found with another time than the recorded one are not changes of a live call.
                changes = [one for one in effects.store() if not one.is_touch]
                self._record(number, changes, origin)
        except Exception as error:  # noqa: BLE001  recording fails open
            self._fail(error)
        self._group = set(self._open)
        self._scanned_ns = clock.mono_ns()
        self._scan_took_ns = clock.thread_cpu_ns() - started
        return True

    def _record(self, number: int, changes: list[Change], origin: ChangeOrigin) -> None:
        effects = self._all[number]
        capture = effects.state.capture
        if effects.problem is not None:
            why, effects.problem = safe_str(effects.problem), None
            self._recorder.warn(f"file changes are not recorded ({why}).")
        gaps, effects.missed = effects.missed + capture.torn, 0
        left_out, capture.left_out, capture.torn = capture.left_out, [], 0
        if not (changes or gaps):
            return
        for data in effect_events(
            number, changes, origin, gaps=gaps, left_out=left_out, is_scanned=True
        ):
            self._recorder.append(NewEvent(events.FILES, data, redacted=True))

    def _fail(self, error: Exception) -> None:
        self._is_broken = True
        self._recorder.warn(f"the files of this run are not on its tape ({safe_str(error)}).")


def _take_current(state: WorkspaceState, path: bytes) -> None:
    """Replace the recorded entry of a path by the current one."""
    try:
        status = os.lstat(os.path.join(state.root, path))
    except OSError:
        state.entries.pop(path, None)
        return
    entry: FileEntry | None = state.capture.entry(path, status, None)
    if entry is not None:
        state.entries[path] = entry


def _note_stamps(state: WorkspaceState) -> None:
    """Note the stamps of files that are as they were recorded: a scan reads the others."""
    for path, status in state.selection.walk():
        entry = state.entries.get(path)
        if entry is not None and not entry.is_folder:
            known = (entry.mode, entry.size, entry.mtime_ns)
            if known == (status.st_mode, status.st_size, status.st_mtime_ns):
                state.stamps[path] = (status.st_ino, status.st_ctime_ns)
