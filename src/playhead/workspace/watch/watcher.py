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
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from playhead import clock, events
from playhead.encoding.values import safe_str
from playhead.recording import lanes
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.workspace.chosen_files import LeftOut
from playhead.workspace.snapshot import WorkspaceState
from playhead.workspace.tree_listing import Change
from playhead.workspace.watch import call_marks as marks
from playhead.workspace.watch import inotify
from playhead.workspace.watch.effect_events import ChangeOrigin, effect_events, state_event
from playhead.workspace.watch.effects import Effects
from playhead.workspace.watch.inotify import FileEvent, parse_events
from playhead.workspace.watch.late_files import CallTimes, OutsideWatch, older_folder
from playhead.workspace.watch.mark_answers import MarkAnswers
from playhead.workspace.watch.open_calls import OpenCalls, pid_of
from playhead.workspace.watch.own_writes import Announcement
from playhead.workspace.watch.watch_queue import WatchQueue

# After this time without a mark, the changes so far are stored: during a long call, or in the agent's own code.
_QUIET_S = 0.25
# Without file events, scanning may take this share of the time.
_SCAN_SHARE = 10
# Files outside the workspaces are numbered from here.
FIRST_OUTSIDE = 1000


class Watcher:
    """Records effects from `start` to `stop`. No failure in it reaches the command."""

    def __init__(
        self,
        states: Sequence[WorkspaceState],
        watches: WatchQueue,
        recorder: Recorder,
        *,
        outside: Callable[[OutsideWatch], WorkspaceState | None] = lambda _: None,
    ) -> None:
        """`outside` puts the start of a file that is in no workspace on the tape. None: that is not possible."""
        self._all = dict(enumerate(map(Effects, states)))
        self._outside = outside
        self._times = CallTimes()
        self._taken_in: set[bytes] = set()
        self._watches = watches
        self._recorder = recorder
        self._batches: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        self._open = OpenCalls()
        # Every call that was open at some time since changes were last stored.
        self._group: set[str] = set()
        self._last_ended: str | None = None
        self._gaps = 0
        # Whether changes are announced on the tape and not stored yet.
        self._is_pending = False
        self._scan_next = watches.why_scan is not None
        self._scanned_ns = self._scan_took_ns = 0
        self._wake, self._woken = os.pipe()
        self._answers = MarkAnswers(watches.events.fd)
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
        self._answers.close()
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
            queued = b"?"
            while queued:
                self._watches.log.begin_read()
                queued = source.read()
                self._batches.put((clock.mono_ns(), queued))
            if self._wake in ready:
                self._batches.put(None)
                return

    def _work(self) -> None:
        for one in self._all.values():
            # Parsing git's index takes 100 ms in a large repository: now, while the command starts, and not when a
            # process waits for its first change.
            _ = one.state.selection.tracked
        is_ended = False
        until = clock.mono_ns()
        handled = 0
        while not is_ended:
            if self._is_idle:
                self._watches.log.end_read(handled)
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
            self._read_log()
            handled += 1
            for event in parse_events(batch[1]):
                self._apply(event, until)
        self._read_log()
        if self._scans:
            self._scan()
        self._settle(clock.mono_ns())

    @property
    def _is_idle(self) -> bool:
        """Return whether calls may start and end without a mark: see `call_log`."""
        each = self._all.values()
        return not (self._scans or any(one.unstored or not one.own.is_idle for one in each))

    def _read_log(self) -> None:
        """Handle the calls that started or ended without a mark, when no change was unstored."""
        for kind, moment, call in self._watches.log.read():
            self._pass(kind, call, moment)
            self._group = self._open.names

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
            if (
                event.mask & (inotify.CREATE | inotify.MOVED_TO)
                or (number, path) in self._watches.unreadable
            ):
                self._enter(number, path)

    def _enter(self, number: int, folder: bytes) -> None:
        """Watch a new folder. Files that were created in it before it was watched are found by listing it."""
        effects = self._all[number]
        root, unreadable = effects.state.root, list[LeftOut]()
        self._watches.unreadable.discard((number, folder))
        for path, _ in effects.state.selection.walk(
            folder,
            entering=lambda one: self._watches.watch(number, root, one),
            left_out=unreadable.append,
        ):
            effects.note(path, inotify.CREATE)
        effects.state.capture.left_out += [
            one for one in unreadable if one.why.startswith("unreadable")
        ]

    def _mark(self, name: bytes) -> None:
        """Handle the start or end of a call: the changes so far belong to the calls that were open."""
        kind, when, call = os.fsdecode(name).split(".", 2)
        moment, _, thread = when.partition("-")
        path = os.path.join(self._watches.marks, name)
        if kind in marks.ABOUT_PATHS:
            self._heed_path(kind, path, call, int(thread or "0"))
            return
        answer = self._answers.once(path, lambda: self._announce_pending(int(moment)))
        if thread and kind != marks.MOMENT:
            for effects in self._all.values():
                effects.own.pass_by(int(thread))
        is_settled = not self._scans or self._may_scan()
        origin = self._origin(int(moment), before=None if kind == marks.END else call)
        if is_settled:
            if self._scans:
                self._scan()
            self._look(origin, answer)
        self._pass(kind, call, int(moment))
        if is_settled:
            self._group = self._open.names
            self._store(origin, answer)
            answer()
            self._store_rest(origin)
        answer()
        with suppress(OSError):
            os.unlink(path)

    def _pass(self, kind: str, call: str, moment: int) -> None:
        self._open.end_killed()
        if kind == marks.START:
            self._open.start(call)
            self._times.start(call, moment)
            self._group.add(call)
        elif kind == marks.END:
            self._open.end(call)
            self._times.end(call, moment)
            self._last_ended = call

    def _announce_pending(self, moment: int) -> None:
        if pending := sum(one.unstored for one in self._all.values()):
            self._is_pending = True
            self._append_state(moment, pending=pending)

    def _append_state(self, moment: int, **state: int) -> None:
        self._recorder.append(NewEvent(events.FILES, state_event(moment, **state), redacted=True))

    def _heed_path(self, kind: str, mark: bytes, sender: str, thread: int) -> None:
        """Handle a mark that points to a file: a process is about to change it."""
        with suppress(OSError):
            path = os.readlink(mark)
            if kind == marks.OUTSIDE:
                self._take_in(path)
            elif kind == marks.READ:
                self._take_in_late(path)
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
        if path not in self._taken_in:
            self._watch_outside(path, is_late=False)

    def _take_in_late(self, path: bytes) -> None:
        """Store a file outside the workspaces that is about to be read, as changed by the call that wrote it."""
        calls = self._times.at(os.stat(path).st_ctime_ns)
        if not calls or path in self._taken_in:
            return
        file = self._watch_outside(path, is_late=True)
        if (effects := self._all.get(file.number)) is None:
            return
        effects.note(file.name, inotify.CREATE)
        effects.look()
        until = max(one.ended_mono for one in calls)
        origin = ChangeOrigin([one.call for one in calls], None, None, until, {})
        self._record(file.number, effects.store(), origin)

    def _watch_outside(self, path: bytes, *, is_late: bool) -> OutsideWatch:
        self._taken_in.add(path)
        number = FIRST_OUTSIDE + sum(one >= FIRST_OUTSIDE for one in self._all)
        # The program, or a call, creates the other folders in a replay as well, and may rely on their absence.
        began = self._times.began
        folder = older_folder(path, began)
        name = os.path.relpath(path, folder)
        self._watches.watch(number, folder, os.path.dirname(name))
        file = OutsideWatch(number, folder, name, began, is_late)
        state = self._outside(file)
        if state is None:
            self._watches.drop(number)
        else:
            self._all[number] = Effects(state)
        return file

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

    def _origin(self, until: int, before: str | None = None) -> ChangeOrigin:
        """Return the origin of the changes so far. `before` is the call that starts now."""
        return ChangeOrigin(sorted(self._group), self._last_ended, before, until, {})

    def _settle(self, until: int) -> None:
        """Store the changes so far, for which no process waits."""
        origin = self._origin(until)
        self._look(origin)
        self._store_rest(origin)

    def _look(self, origin: ChangeOrigin, long: Callable[[], None] = lambda: None) -> None:
        """Read the changed files, and find out which of them the program's own code has written.

        `long` is called if this takes longer than a process should wait.
        """
        pids = {pid_of(one) for one in origin.calls}
        for number, effects in self._all.items():
            effects.look(long)
            # Now, because the positions of the program's open files change as soon as it continues.
            if pids and effects.sizes:
                origin.own[number] = effects.own.among(effects.sizes, pids)

    def _store(self, origin: ChangeOrigin, long: Callable[[], None] | None = None) -> None:
        """Store the files of `_look` and put the changes on the tape: blobs first, then the event that names them.

        With `long`, only those that a process may wait for.
        """
        for number, effects in self._all.items():
            changes = effects.store(long)
            if effects.problem is not None:
                why, effects.problem = safe_str(effects.problem), None
                self._recorder.warn(f"file changes are not recorded ({why}).")
            self._gaps += effects.missed
            effects.missed = 0
            own = origin.own.get(number, frozenset())
            if mine := [one for one in changes if one.path in own]:
                self._record(number, mine, origin._replace(calls=[]))
            self._record(number, [one for one in changes if one.path not in own], origin)

    def _store_rest(self, origin: ChangeOrigin) -> None:
        """Store the files that no process waits for. Then the attribution of the changes so far is finished."""
        self._store(origin)
        if self._is_pending:
            self._is_pending = False
            self._append_state(origin.until_ns, settled=True)
        for effects in self._all.values():
            effects.own.settle()

    def _record(self, number: int, changes: list[Change], origin: ChangeOrigin) -> None:
        capture = self._all[number].state.capture
        if not (changes or self._gaps or capture.left_out):
            return
        gaps, self._gaps = self._gaps + capture.torn, 0
        left_out, capture.left_out, capture.torn = capture.left_out, [], 0
        # Stored first: these files decide what a replay compares.
        exceeded = self._all[number].state.selection.take_exceeded()
        left_out = [*(LeftOut(one, "ignored") for one in exceeded), *left_out]
        for data in effect_events(
            number,
            changes,
            origin,
            gaps=gaps,
            left_out=left_out,
            is_scanned=self._watches.why_scan is not None,
        ):
            self._recorder.append(NewEvent(events.FILES, data, redacted=True))
