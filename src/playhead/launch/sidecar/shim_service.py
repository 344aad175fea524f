"""Serve the calls of the run's shims in the sidecar: record them, or play them from the tape. Knows one socket and
its clients; `caller` interprets the messages of one shim.

If the sidecar is killed, shims run their programs without it.
"""

from __future__ import annotations

import selectors
from typing import TYPE_CHECKING

from playhead import clock
from playhead.encoding.values import safe_str
from playhead.host.later import Later
from playhead.launch.shims import post
from playhead.launch.shims.post import Shims
from playhead.launch.shims.shim_frames import refusal
from playhead.launch.sidecar.services import Service, SharedDeck
from playhead.recording.deck import Deck

if TYPE_CHECKING:
    from playhead.launch.shims import caller
    from playhead.launch.shims.caller import Caller
else:
    caller = Later("playhead.launch.shims.caller")  # loaded in the sidecar, with the first shim

# The maximum time that shims are served after the command has ended: a shim may never stop sending.
_LONGEST_END_NS = 5_000_000_000
# How long the end waits for the next message of a shim. A shim writes output to the command first, and reports it
# then: a command that ends at that output (a script that kills its coprocess) would end the recording in between.
_LAST_MESSAGE_S = 0.1


class ShimService(Service):
    """Serves the socket that shims connect to."""

    starts_early = True
    # Created by `serve`, after the fork: otherwise the launcher would share the epoll descriptor.
    _selector: selectors.BaseSelector

    def __init__(self, world: SharedDeck, shims: Shims) -> None:
        super().__init__(world, () if shims.door is None else (shims.door,))
        self._surroundings = shims.surroundings
        self._folder = shims.folder
        self._tree = shims.tree
        self._callers: dict[int, Caller] = {}

    def serve(self, stop: int) -> None:
        (door,) = self.sockets
        opened = self.world.enter()
        lanes = caller.ChildLanes()
        if self._tree is not None:
            self._tree.begin(self.world.command, self.world.taped)
        self._selector = selectors.DefaultSelector()
        self._selector.register(door, selectors.EVENT_READ)
        self._selector.register(stop, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fd == stop:
                    self._selector.unregister(stop)
                    self._end_callers()
                    return
                if key.fd == door.fileno():
                    self._admit(opened, lanes)
                else:
                    self._hear(key.fd)

    def clear_up(self) -> None:
        if self._folder is not None:
            post.remove_folder(self._folder)

    def _admit(self, opened: Deck, lanes: caller.ChildLanes) -> None:
        line, _ = self.sockets[0].accept()
        if self._surroundings is None:
            line.close()
            return
        self._callers[line.fileno()] = caller.Caller(
            line, opened, self._surroundings, lanes, self._tree
        )
        self._callers[line.fileno()].has_own_clock = self.world.has_own_clock
        self._selector.register(line, selectors.EVENT_READ)

    def _hear(self, fd: int) -> None:
        found = self._callers.get(fd)
        if found is None:
            return  # removed since `select` returned
        try:
            if found.hear():
                return
        except Exception as error:  # noqa: BLE001  a failure with one shim must not end all others
            self.world.recorder.warn(f"a subprocess is not recorded ({safe_str(error)}).")
            if self.world.is_replay:  # the program must not run for real either
                found.line.send(refusal(safe_str(error)))
        self._part_with(fd)

    def _part_with(self, fd: int) -> None:
        self._selector.unregister(fd)
        self._callers.pop(fd).leave()

    def _end_callers(self) -> None:
        """Write everything that shims have sent: the command has ended."""
        latest = clock.mono_ns() + _LONGEST_END_NS
        while self._callers and clock.mono_ns() < latest:
            if not (ready := self._selector.select(_LAST_MESSAGE_S)):
                break
            for key, _ in ready:
                if key.fd in self._callers:
                    self._hear(key.fd)
                else:
                    self.sockets[0].accept()[0].close()
        for fd in list(self._callers):
            self._part_with(fd)
