"""Start the sidecar, query it and end it, from the launcher. Knows the messages between the two; does not know what
the sidecar does.

    W  launcher: the command runs; its pid
    G  launcher: which signals have reached the process group? sidecar: their numbers, one byte each
    E  launcher: the command has ended. sidecar: everything is on the tape; 1: it stays to pass on the output
       of processes that the command left behind
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.host import descriptors
from playhead.host.descriptors import frame, take_frames
from playhead.host.later import Later
from playhead.launch.proxy.ports import ProxyPorts
from playhead.launch.shims.post import Shims
from playhead.launch.sidecar.command_streams import STDIN, Stream
from playhead.launch.sidecar.process import END, SIGNALS, WATCH, SidecarProcess
from playhead.launch.sidecar.services import ProxyService, Service, SharedDeck
from playhead.recording.recorder import Recorder
from playhead.tape.output_position import OutputPage

if TYPE_CHECKING:
    from playhead.launch.sidecar import shim_service
else:
    shim_service = Later(
        "playhead.launch.sidecar.shim_service"
    )  # a command that is Python has no shims


class Sidecar:
    """A running sidecar, as the launcher sees it. If it was killed, every method does nothing."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self._line = line

    @property
    def segment(self) -> str:
        """The name of its segment, if it has written one."""
        return str(self.pid)

    def watch(self, command: int) -> None:
        """Name the command. If the launcher is killed, the sidecar serves until this process ends."""
        with suppress(OSError):
            self._line.sendall(frame(WATCH, command.to_bytes(4, "big")))

    def signals(self) -> frozenset[int]:
        """The signals that have reached the process group since the last call."""
        return frozenset(self._ask(SIGNALS))

    def dismiss(self) -> None:
        """Return when all output of the command is passed on, and everything is on the tape.

        The sidecar may stay behind: output of the command's children is passed on until they end.
        """
        stays = self._ask(END) == b"\1"
        self._line.close()
        if not stays:
            with suppress(ChildProcessError):
                os.waitpid(self.pid, 0)

    def _ask(self, letter: bytes) -> bytes:
        buffer = bytearray()
        try:
            self._line.sendall(frame(letter))
            while data := self._line.recv(1024):
                buffer += data
                for _, payload in take_frames(buffer):
                    return payload
        except OSError:
            return b""
        return b""


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
    ours, its = socket.socketpair()
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
            descriptors.keep_only(its.fileno(), *kept)
            SidecarProcess(world, streams, services, line=its, signals=signals, page=page).run()
        finally:
            # Past the launcher's atexit handlers, and without waiting for threads of services.
            os._exit(0)
    its.close()
    if proxy is not None:
        proxy.close()
    if shims is not None:
        shims.close()
    return Sidecar(pid, ours)


def _output_page(run: Path, streams: Sequence[Stream]) -> OutputPage | None:
    try:
        own = [one for one in streams if one.name != STDIN and not one.is_terminal]
        pipes = {one.name: one.source for one in own}
        return OutputPage(run, pipes) if pipes else None
    except OSError:
        return None  # the disk is full: then processes cannot tell which output belongs to a child
