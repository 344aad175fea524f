"""The workspaces of a run from its start to its end: snapshot, watch, close. Called by the launcher.

Knows the order of steps. Fails open: where a workspace cannot be recorded, the tape says why and the
command runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from playhead import events
from playhead.encoding.values import safe_str
from playhead.host.project import project_of, repository_of
from playhead.host.stderr import say
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.workspace.blobs.pool import Pool, PoolWriter
from playhead.workspace.capture import Capture
from playhead.workspace.chosen_files import ChosenFiles, output_files
from playhead.workspace.snapshot import WorkspaceState, capture_known, save_known, take_snapshot
from playhead.workspace.tree_listing import UNREAD, FileEntry, encode_listing
from playhead.workspace.watch.call_marks import write_covered
from playhead.workspace.watch.late_files import OutsideWatch, born_ns
from playhead.workspace.watch.watch_queue import WatchQueue
from playhead.workspace.watch.watcher import Watcher


@dataclass(slots=True)
class WorkspaceTape:
    """The recorded workspaces of a run, as the launcher sees them."""

    pool: Pool
    writer: PoolWriter
    states: list[WorkspaceState]
    queue: WatchQueue | None
    watcher: Watcher | None = None
    # Paths below the workspaces that are not recorded.
    left_out: list[bytes] = field(default_factory=list)

    def start(self, recorder: Recorder) -> None:
        """Start watching. Called just before the command starts, after the last fork: threads do not survive a fork."""
        if self.queue is not None:
            roots = [root for one in self.states for root in _roots(one.root, one.selection.only)]
            write_covered(self.queue.marks, roots, self.left_out)
            self.watcher = Watcher(
                self.states,
                self.queue,
                recorder,
                outside=lambda file: _take_in(self, recorder, file),
            )
            self.watcher.start()

    def stop(self) -> None:
        """Stop watching: the command has ended. A failure here must not change the result of the run."""
        try:
            self._close()
        except Exception as error:  # noqa: BLE001  recording fails open
            say(
                f"playhead: the files of this run are not complete on the tape ({safe_str(error)})."
            )

    def _close(self) -> None:
        if self.watcher is not None:
            self.watcher.stop()
        elif self.queue is not None:
            self.queue.close()
        for state in self.states:
            save_known(self.pool, state)
        self.writer.close()


def workspaces_for(cwd: Path, more: Sequence[Path] = ()) -> list[Path]:
    """Return the project folder of a command, and the additional folders that the user named."""
    found: list[Path] = []
    for one in (project_of(cwd), *more):
        # A folder inside another one is part of it.
        if not any(one == other or other in one.parents for other in found):
            found.append(one)
    return found


def open_workspaces(recorder: Recorder, home: Path, folders: Sequence[Path]) -> WorkspaceTape:
    """Snapshot each folder onto the tape, and watch it. For a worktree, do the same with its repository."""
    pool = Pool(home)
    tape = WorkspaceTape(pool, PoolWriter(pool, recorder.run_id), [], _queue(recorder))
    for folder in folders:
        try:
            _open(tape, recorder, home, folder)
            repository = repository_of(folder)
            if repository is not None and not any(
                repository.is_relative_to(one) for one in folders
            ):
                _open(tape, recorder, home, repository.parent, only=repository.name)
        except Exception as error:  # noqa: BLE001  recording fails open: the command runs all the same
            data = {"root": str(folder), "refused": safe_str(error)}
            recorder.append(NewEvent(events.WORKSPACE, data))
    return tape


def _open(
    tape: WorkspaceTape, recorder: Recorder, home: Path, folder: Path, only: str | None = None
) -> None:
    """`only`: the one name in the folder that is recorded."""
    queue = tape.queue
    number, root = len(tape.states), os.fsencode(os.path.realpath(folder))
    if queue is not None:
        queue.check(root)
    try:
        snapshot, state = take_snapshot(
            str(folder),
            tape.pool,
            tape.writer,
            excluded=(str(home), *output_files()),
            secrets=_secrets(recorder),
            entering=None if queue is None else lambda one: queue.watch(number, root, one),
            only=None if only is None else os.fsencode(only),
        )
    except BaseException:
        if queue is not None:
            queue.drop(number)
        raise
    data = {"workspace": number, **snapshot.as_data()}
    if only is not None:
        data["only"] = [only]
    store = os.fsencode(os.path.realpath(home))
    if store.startswith(root + b"/"):
        # The store is not part of the workspace, wherever the run is read later.
        data["store"] = os.fsdecode(os.path.relpath(store, root))
    if queue is None:
        data["unwatched"] = "this platform reports no file changes"
    elif queue.why_scan is not None:
        data["scanned"] = queue.why_scan
    recorder.append(NewEvent(events.WORKSPACE, data, redacted=True))
    tape.states.append(state)
    tape.left_out += [os.path.join(root, one.path) for one in snapshot.left_out]


def _take_in(tape: WorkspaceTape, recorder: Recorder, file: OutsideWatch) -> WorkspaceState | None:
    """Record one file outside the workspaces. None: its name is not text, or the store is full."""
    state = _outside_state(tape, recorder, file.folder, file.name)
    path = os.path.join(file.folder, file.name)

    def begin_late(state: WorkspaceState) -> None:
        born = born_ns(path)
        if born is None or born < file.began:
            status = os.lstat(path)
            state.entries[file.name] = FileEntry(status.st_mode, 0, 0, UNREAD)
        state.tree = tape.writer.put(encode_listing(state.entries))

    begin = begin_late if file.is_late else capture_known
    return state if _is_begun(state, recorder, file.number, begin) else None


def _outside_state(
    tape: WorkspaceTape, recorder: Recorder, folder: bytes, name: bytes
) -> WorkspaceState:
    capture = Capture(folder, tape.writer, secrets=_secrets(recorder), tracked=dict)
    return WorkspaceState(ChosenFiles(folder, only=frozenset((name,))), capture)


def _is_begun(
    state: WorkspaceState,
    recorder: Recorder,
    number: int,
    begin: Callable[[WorkspaceState], None],
) -> bool:
    """Put the start of a file outside the workspaces on the tape. Return whether that was possible."""
    (name,) = state.selection.only or (b"",)
    try:
        named = {"root": state.root.decode(), "only": [name.decode()]}
        begin(state)
    except UnicodeDecodeError:
        return False
    except OSError as error:
        recorder.warn(f"a file could not be copied before it was written ({safe_str(error)}).")
        return False
    size = sum(one.size for one in state.entries.values())
    data = {"workspace": number, **named, "tree": state.tree, "bytes": size}
    recorder.append(NewEvent(events.WORKSPACE, data, redacted=True))
    return True


def _roots(root: bytes, only: frozenset[bytes] | None) -> list[bytes]:
    return [root] if only is None else [os.path.join(root, one) for one in only]


def _secrets(recorder: Recorder) -> Callable[[], tuple[bytes, ...]]:
    redactor = recorder.redactor
    return (lambda: ()) if redactor is None else (lambda: redactor.values)


def _queue(recorder: Recorder) -> WatchQueue | None:
    try:
        return WatchQueue(os.fsencode(recorder.folder))
    except OSError:
        return None
