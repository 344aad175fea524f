"""Watch the workspaces of a run while its command runs, and record which call changed which files.

Knows the queue of file events, marks of calls, and attribution. Two threads of the launcher: one empties
the kernel's queue, so that it does not overflow; the other applies events in their order and stores content.

Between two marks the set of open calls does not change. So the changes between them belong to that
set: one call, several that ran at the same time, or none (the agent's own code between calls).
"""

from __future__ import annotations

import os
import queue
import select
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from playhead import clock, events
from playhead.encoding.values import safe_str
from playhead.recording import lanes
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.workspace.chosen_files import MOST_NAMED, LeftOut
from playhead.workspace.snapshot import WorkspaceState
from playhead.workspace.tree_listing import Change, encode_changes, shown
from playhead.workspace.watch import call_marks as marks
from playhead.workspace.watch import inotify
from playhead.workspace.watch.effects import Effects
from playhead.workspace.watch.inotify import FileEvent, Inotify, is_silent, parse_events
from playhead.workspace.watch.open_calls import OpenCalls, pid_of
from playhead.workspace.watch.own_writes import Announcement

# After this time without a mark, the changes so far are stored: during a long call, or in the agent's own code.
_QUIET_S = 0.25
# Without file events, scanning may take this share of the time.
_SCAN_SHARE = 10
# Files outside the workspaces are numbered from here.
FIRST_OUTSIDE = 1000
# Maximum number of changes in one event on the tape.
_MOST_CHANGES = 2_000


class WatchQueue:
    """The watches of one run, including the one on its folder of marks."""

    def __init__(self, folder: bytes) -> None:
        self.marks = os.path.join(folder, os.fsencode(marks.FOLDER))
        os.mkdir(self.marks, 0o700)
        # The number of a watch → workspaces that have this folder: (number, path in it).
        self.places: dict[int, set[tuple[int, bytes]]] = {}
        self.why_scan: str | None = None
        self.events = Inotify()
        self._marks_watch = self.events.add(self.marks)

    def is_mark(self, event: FileEvent) -> bool:
        return event.watch == self._marks_watch

    def watch(self, number: int, root: bytes, folder: bytes) -> None:
        """Watch a folder of a workspace. If that fails, changes are found by scanning."""
        if self.why_scan is not None:
            return
        try:
            watch = self.events.add(os.path.join(root, folder))
            self.places.setdefault(watch, set()).add((number, folder))
        except FileNotFoundError:
            return
        except PermissionError:
            return  # it is unreadable, and the snapshot has named it
        except OSError as error:
            self.why_scan = safe_str(error)

    def check(self, root: bytes) -> None:
        if is_silent(root):
            self.why_scan = "the file system reports no changes"

    def drop(self, number: int) -> None:
        """Forget a workspace that could not be recorded: its watches stay, but their events are ignored."""
        for watch, places in list(self.places.items()):
            self.places[watch] = {one for one in places if one[0] != number}

    def forget(self, number: int, folder: bytes) -> None:
        """Forget a folder that was moved or deleted: events of its watches are ignored until it is found again."""
        prefix = folder + b"/"
        for watch, places in list(self.places.items()):
            gone = {
                (one, path)
                for one, path in places
                if one == number and (path == folder or path.startswith(prefix))
            }
            if gone:
                self.places[watch] = places - gone

    def close(self) -> None:
        self.events.close()
        with suppress(OSError):
            for name in os.listdir(self.marks):
                os.unlink(os.path.join(self.marks, name))
            os.rmdir(self.marks)


class Watcher:
    """Records effects from `start` to `stop`. No failure in it reaches the command."""

    def __init__(
        self,
        states: Sequence[WorkspaceState],
        watches: WatchQueue,
        recorder: Recorder,
        *,
        outside: Callable[[bytes, int], WorkspaceState | None] | None = None,
    ) -> None:
        """`outside` takes a snapshot of a file that is in no workspace, under its own number."""
        self._all = dict(enumerate(map(Effects, states)))
        self._outside = outside
        self._taken_in: set[bytes] = set()
        self._watches = watches
        self._recorder = recorder
        self._batches: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        self._open = OpenCalls()
        # Every call that was open at some time since changes were last stored.
        self._group: set[str] = set()
        self._last_ended: str | None = None
        self._gaps = 0
        self._scan_next = watches.why_scan is not None
        self._scanned_ns = self._scan_took_ns = 0
        self._wake, self._woken = os.pipe()
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._line.setblocking(False)
        self._threads = [
            threading.Thread(target=self._guard, args=(one,), daemon=True, name=name)
            for one, name in ((self._drain, "playhead-files-queue"), (self._work, "playhead-files"))
        ]

    def start(self) -> None:
        for one in self._threads:
            one.start()

    def stop(self) -> None:
        """Stop when the command has ended. Returns when all of its changes are on the tape."""
        os.close(self._woken)
        for one in self._threads:
            one.join()
        os.close(self._wake)
        self._line.close()
        self._watches.close()

    def _guard(self, work: Any) -> None:
        lanes.current.set(lanes.MAIN)
        try:
            work()
        except Exception as error:  # noqa: BLE001  the command and its other recordings continue
            self._recorder.warn(f"file changes are no longer recorded ({safe_str(error)}).")
            self._batches.put(None)

    def _drain(self) -> None:
        """Empty the kernel's queue as it fills. It holds 16,384 events; `rm -rf` causes more."""
        source = self._watches.events
        poll = select.poll()
        poll.register(source.fd, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            while queued := source.read():
                self._batches.put((clock.mono_ns(), queued))
            if self._wake in ready:
                self._batches.put(None)
                return

    def _work(self) -> None:
        is_ended = False
        until = clock.mono_ns()
        while not is_ended:
            is_dirty = any(one.dirty for one in self._all.values())
            try:
                batch = self._batches.get(timeout=_QUIET_S if is_dirty else None)
            except queue.Empty:
                self._settle(until)
                self._group = self._open.names
                continue
            if batch is None:
                is_ended = True
                continue
            until = batch[0]
            for event in parse_events(batch[1]):
                self._apply(event, batch[0])
        if self._scans:
            self._scan()
        self._settle(clock.mono_ns())

    @property
    def _scans(self) -> bool:
        return self._scan_next or self._watches.why_scan is not None

    def _apply(self, event: FileEvent, read_at: int) -> None:
        if event.mask & inotify.OVERFLOW:
            self._scan_next = True
            self._gaps += 1
        elif self._watches.is_mark(event):
            if event.mask & inotify.CREATE and event.name != marks.COVERED.encode():
                self._mark(event.name)
        elif event.mask & inotify.IGNORED:
            self._watches.places.pop(event.watch, None)
        elif event.watch in self._watches.places and event.name:
            self._note(event, read_at)

    def _note(self, event: FileEvent, read_at: int) -> None:
        for number, folder in tuple(self._watches.places[event.watch]):
            path = folder + b"/" + event.name if folder else event.name
            if self._all[number].state.selection.has_name(path):
                self._note_in(number, path, event, read_at)

    def _note_in(self, number: int, path: bytes, event: FileEvent, read_at: int) -> None:
        effects = self._all[number]
        if read_at < effects.read_at.get(path, 0):
            # It changed again before its content was read. A replay makes the changes of the program's own code itself.
            self._gaps += not effects.own.has(path)
        if not event.mask & inotify.IS_FOLDER:
            effects.note(path, event.mask)
        elif event.mask & inotify.DELETE:
            # Only an empty folder can be deleted: each file in it had its own event before.
            effects.note(path, event.mask)
        elif event.mask & inotify.MOVED_FROM:
            self._watches.forget(number, path)
            effects.note_below(path)
        elif effects.state.selection.why_not_folder(path) is None:
            effects.note(path, event.mask)
            if event.mask & (inotify.CREATE | inotify.MOVED_TO):
                self._enter(number, path)

    def _enter(self, number: int, folder: bytes) -> None:
        """Watch a new folder. Files that were created in it before it was watched are found by listing it."""
        effects = self._all[number]
        root = effects.state.root
        for path, _ in effects.state.selection.walk(
            folder, entering=lambda one: self._watches.watch(number, root, one)
        ):
            effects.note(path, inotify.CREATE)

    def _mark(self, name: bytes) -> None:
        """Handle the start or end of a call: the changes so far belong to the calls that were open."""
        kind, _, rest = os.fsdecode(name).partition(".")
        when, _, call = rest.partition(".")
        moment, _, thread = when.partition("-")
        if kind in marks.ABOUT_PATHS:
            self._heed_path(kind, os.path.join(self._watches.marks, name), call, int(thread or "0"))
            return
        path = os.path.join(self._watches.marks, name)
        answer = self._answer_once(path)
        if thread and kind != marks.MOMENT:
            for effects in self._all.values():
                effects.own.pass_by(int(thread))
        is_settled = not self._scans or self._may_scan()
        if is_settled:
            if self._scans:
                self._scan()
            self._settle(int(moment), before=None if kind == marks.END else call, long=answer)
        self._open.end_killed()
        if kind == marks.START:
            self._open.start(call)
            self._group.add(call)
        elif kind == marks.END:
            self._open.end(call)
            self._last_ended = call
        if is_settled:
            self._group = self._open.names
        answer()
        with suppress(OSError):
            os.unlink(path)

    def _answer_once(self, mark: bytes) -> Callable[[], None]:
        """Return a function that lets the process that waits at a mark continue."""
        waiting = [mark]

        def answer() -> None:
            with suppress(OSError, IndexError):
                address = os.readlink(waiting.pop())
                if address != marks.NO_ANSWER.encode():
                    self._line.sendto(b".", b"\0" + address)

        return answer

    def _heed_path(self, kind: str, mark: bytes, sender: str, thread: int) -> None:
        """Handle a mark that points to a file: a process is about to change it."""
        with suppress(OSError):
            path = os.readlink(mark)
            if kind == marks.OUTSIDE:
                self._take_in(path)
            else:
                pid = int(sender.partition(".")[0])
                for effects in self._all.values():
                    effects.own.announce(path, Announcement(kind, pid, thread))
        with suppress(OSError):
            os.unlink(mark)

    def _take_in(self, path: bytes) -> None:
        """Store a file outside the workspaces that is about to be written: its current content is the start of its
        history.
        """
        if self._outside is None or path in self._taken_in:
            return  # another process of the run has written it already
        self._taken_in.add(path)
        number = FIRST_OUTSIDE + sum(one >= FIRST_OUTSIDE for one in self._all)
        self._watches.watch(number, os.path.dirname(path), b"")
        state = self._outside(path, number)
        if state is not None:
            self._all[number] = Effects(state)

    def _may_scan(self) -> bool:
        """Return whether to scan now. A scan of a large folder takes long: then several calls share one."""
        since = clock.mono_ns() - self._scanned_ns
        return since >= self._scan_took_ns * _SCAN_SHARE

    def _scan(self) -> None:
        started = clock.mono_ns()
        for number, effects in self._all.items():
            root = effects.state.root
            # Add the watches again: folders may have been created while events were lost.
            effects.scan(lambda one, n=number, r=root: self._watches.watch(n, r, one))  # type: ignore[misc]
        self._scanned_ns = clock.mono_ns()
        self._scan_took_ns = self._scanned_ns - started
        self._scan_next = False

    def _settle(
        self,
        until: int,
        before: str | None = None,
        long: Callable[[], None] = lambda: None,
    ) -> None:
        """Store the changes and put them on the tape: blobs first, then the event that names them.

        `before` is the call that starts now. `long` is called if this takes longer than a process should wait.
        """
        calls = sorted(self._group)
        for number, effects in self._all.items():
            try:
                changes = effects.settle(long)
            except OSError as error:
                self._recorder.warn(f"file changes are not recorded ({safe_str(error)}).")
                self._gaps += len(effects.dirty)
                effects.dirty.clear()
                continue
            self._gaps += effects.missed
            effects.missed = 0
            if calls and changes:
                own = effects.own.among(changes, {pid_of(one) for one in calls})
                mine = [one for one in changes if one.path in own]
                changes = [one for one in changes if one.path not in own]
                if mine:
                    self._record(number, mine, [], until, before)
            effects.own.settle()
            self._record(number, changes, calls, until, before)

    def _record(
        self, number: int, changes: list[Change], calls: list[str], until: int, before: str | None
    ) -> None:
        capture = self._all[number].state.capture
        if not (changes or self._gaps or capture.left_out):
            return
        gaps, self._gaps = self._gaps + capture.torn, 0
        left_out, capture.left_out, capture.torn = capture.left_out, [], 0
        # Stored first: these files decide what a replay compares.
        exceeded = self._all[number].state.selection.take_exceeded()
        left_out = [*(LeftOut(one, "ignored") for one in exceeded), *left_out]
        for start in range(0, max(1, len(changes)), _MOST_CHANGES):
            data: dict[str, Any] = {
                "workspace": number,
                "calls": calls,
                "until_ns": until,
                "changes": encode_changes(changes[start : start + _MOST_CHANGES]),
            }
            if calls:
                data["own_apart"] = True
            if not calls and self._last_ended is not None:
                data["after"] = self._last_ended
            if not calls and before is not None:
                data["before"] = before
            if gaps:
                data["gaps"], gaps = gaps, 0
            if self._watches.why_scan is not None:
                data["scanned"] = True
            if left_out:
                data["left_out"] = [
                    {"path": shown(one.path), "why": one.why} for one in left_out[:MOST_NAMED]
                ]
                left_out = []
            self._recorder.append(NewEvent(events.FILES, data, redacted=True))
