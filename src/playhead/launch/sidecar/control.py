"""Start the sidecar, query it and end it, from the launcher. Knows the messages between the two; does not know what
the sidecar does.

    W  launcher: the command runs; its pid
    G  launcher: which signals have reached the process group? sidecar: their numbers, one byte each
    E  launcher: the command has ended. sidecar: everything is on the tape; 1: it stays to pass on the output
       of processes that the command left behind
    T  successor: the sidecar was killed, and this pid has taken its place

There is a second line, to the successor of the sidecar: see `successor`.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from playhead import events
from playhead.host import descriptors
from playhead.host.descriptors import frame, take_frames
from playhead.host.later import Later
from playhead.launch.proxy.ports import ProxyPorts
from playhead.launch.shims.post import Shims
from playhead.launch.sidecar.command_streams import STDIN, Stream
from playhead.launch.sidecar.process import END, SIGNALS, TAKEN_OVER, WATCH, SidecarProcess
from playhead.launch.sidecar.services import ProxyService, Service, SharedDeck
from playhead.launch.sidecar.successor import Estate, Heir
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.tape.output_position import OutputPage

if TYPE_CHECKING:
    from playhead.launch.sidecar import shim_service
else:
    shim_service = Later(
        "playhead.launch.sidecar.shim_service"
    )  # a command that is Python has no shims

_TAKEN_OVER_HOLE = {
    "boundary": "process",
    "what": "the sidecar",
    "why": "it was killed: calls in flight, and output that it had read, are not complete",
}


class Sidecar:
    """A running sidecar, as the launcher sees it. If it was killed, its successor answers; if that was killed as well,
    every method does nothing.
    """

    def __init__(self, pid: int, line: socket.socket, next_line: socket.socket) -> None:
        self.pid = pid
        self._line = line
        self._next_line: socket.socket | None = next_line
        self._successor: bytes | None = None

    @property
    def segments(self) -> set[str]:
        """The names of its segments, if it has written any."""
        heir = self._successor
        return {str(self.pid), *(() if heir is None else (str(int.from_bytes(heir, "big")),))}

    def watch(self, command: int) -> None:
        """Name the command. If the launcher is killed, the sidecar serves until this process ends."""
        for line in (self._line, self._next_line):
            with suppress(OSError):
                if line is not None:
                    line.sendall(frame(WATCH, command.to_bytes(4, "big")))

    def signals(self) -> frozenset[int]:
        """The signals that have reached the process group since the last call."""
        return frozenset(self._ask(SIGNALS) or b"")

    def dismiss(self) -> None:
        """Return when all output of the command is passed on, and everything is on the tape.

        The sidecar may stay behind: output of the command's children is passed on until they end.
        """
        stays = self._ask(END) == b"\1" and self._successor is None
        self._line.close()
        if self._next_line is not None:
            self._next_line.close()
        if not stays:
            with suppress(ChildProcessError):
                os.waitpid(self.pid, 0)

    def _ask(self, letter: bytes) -> bytes | None:
        answer = self._answer(letter)
        if answer is None and self._next_line is not None:
            self._line.close()
            self._line, self._next_line = self._next_line, None
            answer = self._answer(letter)
        return answer

    def _answer(self, letter: bytes) -> bytes | None:
        """Return the answer to a question. None: the process at the other end is gone."""
        buffer = bytearray()
        try:
            self._line.sendall(frame(letter))
            while data := self._line.recv(1024):
                buffer += data
                for said, payload in take_frames(buffer):
                    if said != TAKEN_OVER:
                        return payload
                    self._successor = payload
        except OSError:
            return None
        return None


def start(
    recorder: Recorder,
    *,
    streams: Sequence[Stream] = (),
    signals: frozenset[signal.Signals] = frozenset(),
    proxy: ProxyPorts | None = None,
    shims: Shims | None = None,
) -> Sidecar:
    """Fork the sidecar. `signals` are blocked already, and stay blocked in it.

    A process and not a thread of the launcher: if the launcher is killed (`kill -9`), the command's output
    must still flow, and its models and shims must still be answered.
    """
    (ours, its), (next_ours, next_its) = socket.socketpair(), socket.socketpair()
    page = _output_page(recorder.run, streams)
    world = SharedDeck(recorder)
    services: list[Service] = [] if proxy is None else [ProxyService(world, proxy)]
    if shims is not None and shims.door is not None:
        services.append(shim_service.ShimService(world, shims))
    pid = os.fork()
    if pid == 0:
        try:
            kept = [fd for service in services for fd in service.fds]
            kept += [fd for one in streams for fd in (one.source, one.sink)]
            descriptors.keep_only(its.fileno(), next_its.fileno(), *kept)
            _run(world, streams, services, (its, next_its), signals=signals, page=page)
        finally:
            # Past the launcher's atexit handlers, and without waiting for threads of services.
            os._exit(0)
    its.close()
    next_its.close()
    if proxy is not None:
        proxy.close()
    if shims is not None:
        shims.close()
    return Sidecar(pid, ours, next_ours)


def _run(
    world: SharedDeck,
    streams: Sequence[Stream],
    services: Sequence[Service],
    lines: tuple[socket.socket, socket.socket],
    *,
    signals: frozenset[signal.Signals],
    page: OutputPage | None,
) -> None:
    """Be the sidecar; or, in a process that is forked here, its successor."""
    line, next_line = lines
    told, tell = os.pipe()
    heir, is_taped = Heir(), True
    forked = None
    if not world.is_replay:
        with suppress(OSError):  # the user has too many processes
            forked = os.fork()
    if forked == 0:
        os.close(tell)
        line.close()
        estate = Estate(told, streams, services)
        if not estate.is_inherited():
            return
        line, streams, is_taped = next_line, estate.streams, estate.is_taped
        for one in services:
            if not one.is_over:
                one.inherit()
        if is_taped:
            world.recorder.append(NewEvent(events.HOLE, _TAKEN_OVER_HOLE))
        with suppress(OSError):
            line.sendall(frame(TAKEN_OVER, os.getpid().to_bytes(4, "big")))
    else:
        os.close(told)
        next_line.close()
        heir = Heir(None if forked is None else tell)
    SidecarProcess(
        world,
        streams,
        services,
        line=line,
        signals=signals,
        page=page,
        heir=heir,
        is_taped=is_taped,
    ).run()
    heir.dismiss()
    if forked:
        os.waitpid(forked, 0)  # who waits for our end finds no process of the run


def _output_page(run: Path, streams: Sequence[Stream]) -> OutputPage | None:
    try:
        own = [one for one in streams if one.name != STDIN and not one.is_terminal]
        pipes = {one.name: one.source for one in own}
        return OutputPage(run, pipes) if pipes else None
    except OSError:
        return None  # the disk is full: then processes cannot tell which output belongs to a child
