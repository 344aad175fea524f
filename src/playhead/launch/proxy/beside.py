"""The proxy as a process of our own beside the command. Knows forking and who may end it; not HTTP.

A process and not a thread of the launcher: whatever becomes of the launcher (`kill -9`), the command
must be able to talk to its models. Until somebody connects it is a fork that waits: nothing of the
proxy is loaded, and a run without such traffic has no segment of it.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from playhead.host import descriptors
from playhead.host.later import Later
from playhead.launch.proxy import switches
from playhead.launch.proxy.listening import listen
from playhead.launch.proxy.routes import Detour, Origin, addresses, detours, origins, through
from playhead.launch.shims.telling import Telling
from playhead.recording import deck
from playhead.recording.recorder import Recorder
from playhead.tape.store import PLAN

if TYPE_CHECKING:
    import asyncio

    from playhead.launch.proxy import proxy_server as server
    from playhead.replay import begin as replay
    from playhead.replay import plan as plans
else:
    # Loaded by the proxy, when somebody connects to it.
    asyncio = Later("asyncio")
    server = Later("playhead.launch.proxy.proxy_server")
    replay = Later("playhead.replay.begin")
    plans = Later("playhead.replay.plan")

_DISMISSED = b"d"
_COMMAND = struct.Struct("=cq")


class Waiting:
    """Ports that are taken, and nobody serves yet: the command's environment can be made of them."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        listen: Callable[[], socket.socket] = listen,
    ) -> None:
        """`listen` makes a listener that the command can reach. OSError: no port can be had."""
        found = addresses(env)
        self._env = dict(env)
        self._listeners: dict[Origin, socket.socket] = {}
        for origin in origins([*found.values(), *switches.addresses_in(command, env)]):
            self._listeners[origin] = listen()
        self._ports = {origin: one.getsockname()[1] for origin, one in self._listeners.items()}
        self.detours: dict[str, Detour] = detours(env, found, self._ports)
        # The command with the addresses in its own words turned to the proxy.
        self.command = switches.turned(command, env, self._turn)

    def _turn(self, url: str) -> str:
        return through(url, self._ports) or url

    def post(self, recorder: Recorder, tell: Telling | None = None) -> Beside:
        """Fork the proxy. Signals are blocked already, and stay so in it. `tell`: who else hears what
        the models answer.
        """
        ours, its = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(its)
                _Serving(recorder, self._listeners, self._env, ours, tell).serve()
            finally:
                os._exit(0)
        os.close(ours)
        self.close()
        return Beside(pid, its)

    def close(self) -> None:
        for listener in self._listeners.values():
            listener.close()


class Beside:
    """The launcher's end."""

    def __init__(self, pid: int, control: int) -> None:
        self.pid = pid
        self._control = control

    def watch(self, command: int) -> None:
        """Whom the proxy is there for: it goes with it, should the launcher be gone by then."""
        with suppress(OSError):
            os.write(self._control, _COMMAND.pack(b"c", command))

    def dismiss(self) -> None:
        """Returns when everything that was under way is on the tape."""
        with suppress(OSError):
            os.write(self._control, _DISMISSED)
        os.close(self._control)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class _Serving:
    """The proxy's own end."""

    def __init__(
        self,
        recorder: Recorder,
        listeners: dict[Origin, socket.socket],
        env: Mapping[str, str],
        control: int,
        tell: Telling | None,
    ) -> None:
        self._recorder = recorder
        self._tell = tell
        self._listeners = listeners
        self._env = env
        self._control = control
        # Where the end of the command can be heard once the launcher is gone.
        self._command: int | None = None
        self._pid: int | None = None

    def serve(self) -> None:
        descriptors.keep_only(self._control, *(one.fileno() for one in self._listeners.values()))
        if not self._wait_for_a_client():
            return
        paced = self._enter()
        asyncio.run(self._run(paced=paced))
        self._recorder.close()

    def _wait_for_a_client(self) -> bool:
        """False: the run is over, and nobody came."""
        ports = {one.fileno() for one in self._listeners.values()}
        while True:
            watched = [self._control if self._command is None else self._command, *ports]
            ready = set(select.select(watched, (), ())[0])
            if self._command in ready:
                return False
            # First: who the command is was said before the command could connect.
            if self._control in ready and self._is_over() and not self._outlives():
                return False
            if ready & ports:
                return True

    def _enter(self) -> bool:
        """The deck of this process; whether answers keep their time."""
        run = self._recorder.run
        if not (run / PLAN).exists():
            self._open(deck.Deck(self._recorder))
            return False
        mode, _ = replay.begin_replay(run, self._recorder)
        mode.mortal = self._pid
        self._open(deck.Deck(self._recorder, mode))
        plan = plans.read_plan(run)
        return plan is not None and plan.pace

    def _open(self, made: deck.Deck) -> None:
        made.heard_too = self._tell
        deck.activate(made)

    async def _run(self, *, paced: bool) -> None:
        over = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hear() -> None:
            if not self._is_over():
                return
            loop.remove_reader(self._control)
            if self._command is None:
                over.set()
            else:
                loop.add_reader(self._command, over.set)

        if self._command is None:
            loop.add_reader(self._control, hear)
        else:
            loop.add_reader(self._command, over.set)
        await server.Proxy(self._listeners, self._env, paced=paced).serve_until(over)

    def _outlives(self) -> bool:
        """Whether the launcher has gone, and the command has not."""
        return self._command is not None

    def _is_over(self) -> bool:
        """Hear the launcher. Once it is gone without a word, the command's end is what counts: then
        there is a descriptor to wait for, and this says that there is nothing more to hear here.
        """
        told = os.read(self._control, _COMMAND.size)
        if told[:1] == b"c" and len(told) == _COMMAND.size:
            self._pid = _COMMAND.unpack(told)[1]
            return False
        if not told and self._pid is not None:
            with suppress(OSError, AttributeError):
                self._command = os.pidfd_open(self._pid)
        return True
