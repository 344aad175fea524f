"""Apply the file changes of served calls while a replay runs, and record those of its live calls. Runs in a thread of
the launcher. Knows marks; does not know how files are restored or compared.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from contextlib import suppress
from pathlib import Path

from playhead.clock import mono_ns
from playhead.recording.recorder import Recorder
from playhead.workspace.blobs.pool import Pool, PoolWriter
from playhead.workspace.files_report import FilesReport
from playhead.workspace.scratch.live_files import LiveFiles, ScratchFolder
from playhead.workspace.scratch.scratch_workspace import MadeChanges, ScratchWorkspace
from playhead.workspace.watch import call_marks, inotify
from playhead.workspace.watch.inotify import Inotify, parse_events

# How long a served call that has ended waits for calls of other processes that were open at the same time, and how
# often the timeout is checked.
_LONGEST_PARTNERS_NS = 500_000_000
_LOOK_MS = 20


class EffectServer:
    """Applies the changes of served calls when the replayed processes mark them. Runs in a thread of the launcher."""

    def __init__(
        self,
        run: str,
        spaces: list[ScratchWorkspace],
        *,
        store: Path | None = None,
        is_fork: bool = False,
    ) -> None:
        """`store`: where the files of live calls are recorded. None: they are not."""
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
        self._store = store
        self._is_fork = is_fork
        self._live: LiveFiles | None = None

    def start(self, recorder: Recorder) -> None:
        if self._store is not None:
            writer = PoolWriter(Pool(self._store), recorder.run_id)
            self._live = LiveFiles(writer, recorder)
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
        if self._live is not None:
            self._live.finish(self._scratch_folders(), is_fork=self._is_fork)
        self.reports = [one.report() for one in self._spaces]

    def _scratch_folders(self) -> list[ScratchFolder]:
        return [one.scratch_folder for one in self._spaces]

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
        when, _, call = rest.partition(".")
        moment = int(when.partition("-")[0])
        if kind == call_marks.APPLY:
            self._note_call(name, call)
            for one in self._spaces:
                self._record(one.serve(call), moment)
        elif kind == call_marks.FINISH:
            until = mono_ns() + _LONGEST_PARTNERS_NS
            self._held.append((name, call, until))
            return
        else:
            if self._live is not None and kind == call_marks.START:
                self._live.start_call(call, moment, self._scratch_folders())
            elif self._live is not None and kind == call_marks.END:
                self._live.end_call(call, moment)
            self._answer(name)
        self._remove(name)

    def _note_call(self, name: str, original: str) -> None:
        """Note which call of this run has the answer of a call of the original: the target of the mark says so."""
        with suppress(OSError):
            ref = os.readlink(os.path.join(self._folder, name))
            if self._live is not None and ref != call_marks.NO_ANSWER:
                self._live.note_call(original, ref)

    def _record(self, made: list[MadeChanges], moment: int) -> None:
        for one in made:
            if self._live is not None and one.changes:
                self._live.serve(one.number, one.effect, one.changes, moment)

    def _release(self) -> None:
        """Let calls return that waited for others: those have been served, or did not come in time."""
        held, self._held = self._held, []
        for name, call, until in held:
            sharing = [one for one in self._spaces if one.awaits_partners(call)]
            if sharing and mono_ns() < until:
                self._held.append((name, call, until))
                continue
            for one in sharing:
                self._record(one.finish(call), mono_ns())
            self._remove(name)

    def _remove(self, name: str) -> None:
        # The mark is removed when its changes are made: the process waits for the removal.
        with suppress(OSError):
            os.unlink(os.path.join(self._folder, name))
