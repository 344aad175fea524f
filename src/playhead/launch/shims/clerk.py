"""The process that takes the calls of the run's shims: onto the tape, or from it. Knows sockets and the
deck; what one shim says is `caller`'s.

A process of its own, beside the command: it outlives the launcher for those who are still talking, and
whatever becomes of it, shims go on without.
"""

from __future__ import annotations

import selectors
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from playhead import clock
from playhead.encoding.values import safe_str
from playhead.host.later import Later
from playhead.launch.shims import folders
from playhead.launch.shims.caller import Caller, ChildLanes
from playhead.launch.shims.launcher import Launcher
from playhead.launch.shims.shim_frames import DRAIN, WATCH, refusal
from playhead.launch.shims.shim_request import Surroundings
from playhead.recording import deck
from playhead.recording.deck import Deck
from playhead.recording.recorder import Recorder
from playhead.tape.store import PLAN

if TYPE_CHECKING:
    from playhead.replay import begin
    from playhead.replay.modes.taped_mode import ReplayMode
else:
    # Where nothing is replayed, the launcher would wait at its end for what nobody needs.
    begin = Later("playhead.replay.begin")

# To those who never stop talking.
_LONGEST_LISTENING_NS = 5_000_000_000


class Clerk:
    """`door` is where shims call."""

    def __init__(
        self,
        recorder: Recorder,
        door: socket.socket,
        then: Surroundings,
        launcher: Launcher,
        folder: Path,
    ) -> None:
        self._recorder = recorder
        self._door = door
        self._then = then
        self._launcher = launcher
        self._folder = folder
        self._heir: int | None = None
        self._mode: ReplayMode | None = None
        self._lanes = ChildLanes()
        self._callers: dict[int, Caller] = {}
        self._is_replay = (recorder.run / PLAN).exists()
        self._selector = selectors.DefaultSelector()

    def attend(self) -> None:
        """Returns when the launcher has dismissed us, or has gone and nobody is left."""
        self._mode = _mode(self._recorder.run, self._recorder)
        self._meet_command()
        made = Deck(self._recorder, self._mode)
        deck.activate(made)
        self._selector.register(self._door, selectors.EVENT_READ)
        self._selector.register(self._launcher.fd, selectors.EVENT_READ)
        while self._selector.get_map():
            for key, _ in self._selector.select():
                if key.fd == self._launcher.fd:
                    self._told(self._launcher.hear())
                elif key.fd == self._heir:
                    self._end(key.fd)
                    folders.remove(self._folder)  # nobody else is left to do it
                elif key.fd == self._door.fileno():
                    self._admit(made)
                else:
                    self._hear(key.fd)
        self._recorder.close()

    def _admit(self, made: Deck) -> None:
        line, _ = self._door.accept()
        caller = Caller(line, made, self._then, self._lanes)
        self._callers[line.fileno()] = caller
        self._selector.register(line, selectors.EVENT_READ)

    def _hear(self, fd: int) -> None:
        caller = self._callers.get(fd)
        if caller is None:
            return  # parted with since it was seen to have something to say
        try:
            if caller.hear():
                return
        except Exception as error:  # noqa: BLE001  what one shim says must not end all others
            self._recorder.warn(f"a subprocess is not recorded ({safe_str(error)}).")
            if self._is_replay:  # it must not run for real either
                caller.line.send(refusal(safe_str(error)))
        self._part_with(fd)

    def _part_with(self, fd: int) -> None:
        self._selector.unregister(fd)
        self._callers.pop(fd).leave()

    def _meet_command(self) -> None:
        """Who dies where the recorded run was killed."""
        if self._mode is not None and self._launcher.command:
            self._mode.mortal = self._launcher.command

    def _told(self, said: bytes) -> None:
        if said == WATCH:
            self._meet_command()
        elif said == DRAIN:
            self._end(self._launcher.fd)
            self._recorder.close()
            self._launcher.answer()
        elif not said:
            self._heir = self._launcher.heir()
            self._selector.unregister(self._launcher.fd)
            if self._heir is None:
                self._shut()
            else:
                self._selector.register(self._heir, selectors.EVENT_READ)

    def _end(self, last: int) -> None:
        """The command has ended: everything that was said before goes on the tape."""
        self._selector.unregister(last)
        latest = clock.mono_ns() + _LONGEST_LISTENING_NS
        while self._callers and clock.mono_ns() < latest and (ready := self._selector.select(0)):
            for key, _ in ready:
                if key.fd in self._callers:
                    self._hear(key.fd)
                else:
                    self._door.accept()[0].close()
        for fd in list(self._callers):
            self._part_with(fd)
        self._shut()

    def _shut(self) -> None:
        """Nobody is let in any more."""
        self._selector.unregister(self._door)
        self._door.close()


def _mode(run: Path, recorder: Recorder) -> ReplayMode | None:
    if not (run / PLAN).exists():
        return None
    mode, _ = begin.begin_replay(run, recorder)
    # Who dies as the run died is the program, by itself: we only say that the tape ends here.
    mode.recording.closed.update(mode.recording.segments)
    return mode
