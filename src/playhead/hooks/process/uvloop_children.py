"""Record and replay the subprocesses of uvloop, which starts, feeds and reaps them in C.

A recording observes the calls between uvloop and the program's protocol. A replay needs the child's ends of the pipes,
which uvloop does not expose, so it runs asyncio's own transport on uvloop's loop. Knows uvloop's loop and transports.
"""

from __future__ import annotations

import _thread
from asyncio import unix_events
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.process import children
from playhead.hooks.process import popen as process_popen
from playhead.hooks.process.flight import Flight, ProcessAdapter, given_crossing, within
from playhead.hooks.process.request import PIPE, text_of
from playhead.recording import deck
from playhead.recording.deck import Crossing

_NAMES = {0: "stdin", 1: "stdout", 2: "stderr"}

Started = Callable[..., Awaitable[tuple[Any, Any]]]


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "Loop")
    need(module.Loop, "subprocess_exec", "subprocess_shell", "connect_read_pipe")
    need(unix_events, "_UnixSubprocessTransport")
    need(_Played, "_pipe_data_received", "_process_exited")
    patches.replace(module.Loop, "subprocess_exec", _subprocess_exec)
    patches.replace(module.Loop, "subprocess_shell", _subprocess_shell)


def _subprocess_exec(original: Started) -> Started:
    async def subprocess_exec(
        self: Any, protocol_factory: Any, program: Any, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        start = _Start(self, protocol_factory, [program, *args], kwargs, shell=False)
        return await start.through(lambda made, argv, env: original(self, made, *argv, **env))

    return subprocess_exec


def _subprocess_shell(original: Started) -> Started:
    async def subprocess_shell(
        self: Any, protocol_factory: Any, cmd: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        start = _Start(self, protocol_factory, cmd, kwargs, shell=True)  # noqa: S604  as asked
        return await start.through(lambda made, argv, env: original(self, made, cmd, **env))

    return subprocess_shell


class _Start(ProcessAdapter):
    """One process that the program starts with uvloop."""

    def __init__(
        self, loop: Any, protocol_factory: Any, args: Any, options: dict[str, Any], *, shell: bool
    ) -> None:
        self._loop = loop
        self._protocol_factory = protocol_factory
        self._options = options
        streams = dict.fromkeys(_NAMES.values(), PIPE)
        self._asked = {**streams, **options, "args": args, "shell": shell}
        self._argv = [args] if shell else args

    async def through(
        self, start: Callable[[Any, list[Any], dict[str, Any]], Awaitable[tuple[Any, Any]]]
    ) -> tuple[Any, Any]:
        """Start through the deck. `start(protocol_factory, argv, options)` starts a process for real."""
        open_deck = deck.active()
        if open_deck is None or within.get():
            return await start(self._protocol_factory, self._argv, self._options)
        self._start = start
        call = process_popen.describe(self._asked)
        made: tuple[Any, Any] = await open_deck.perform_async(call, self)
        return made

    async def live(self, crossing: Crossing) -> tuple[Any, Any]:
        flight = self.begin(crossing)
        words = [text_of(word) for word in self._argv]
        shown = ["/bin/sh", "-c", *words] if self._asked["shell"] else words
        carried, env = children.carry(shown, self._options.get("env"), crossing)
        options = self._options if env is None else {**self._options, "env": env}
        listener: list[_Listener] = []

        def factory() -> _Listener:
            listener.append(_Listener(self._protocol_factory(), flight))
            return listener[0]

        await self._start(factory, self._argv if carried == shown else carried, options)
        return listener[0].transport, listener[0].protocol

    async def serve(self, crossing: Crossing) -> tuple[Any, Any]:
        self.begin(crossing)
        protocol = self._protocol_factory()
        waiter = self._loop.create_future()
        asked = dict(self._asked)
        args, shell = asked.pop("args"), asked.pop("shell")
        streams = [asked.pop(name) for name in _NAMES.values()]
        # The transport makes a `Popen`, whose hook serves this crossing.
        token = given_crossing.set(crossing)
        try:
            transport = _Played(
                self._loop, protocol, args, shell, *streams, 0, waiter=waiter, **asked
            )
        finally:
            given_crossing.reset(token)
        transport.watch()
        await waiter
        return transport, protocol


class _Listener:
    """Stands between uvloop and the program's protocol."""

    def __init__(self, protocol: Any, flight: Flight) -> None:
        self.protocol = protocol
        self.transport: Any = None
        self._flight = flight

    def connection_made(self, transport: Any) -> None:
        self.transport = _Transport(transport, self._flight)
        self._flight.started(transport.get_pid())
        for fd in (1, 2):
            if transport.get_pipe_transport(fd) is not None:
                self._flight.expects(_NAMES[fd])
        self.protocol.connection_made(self.transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._flight.heard(_NAMES.get(fd, f"fd{fd}"), data)
        self.protocol.pipe_data_received(fd, data)

    def pipe_connection_lost(self, fd: int, error: Exception | None) -> None:
        if fd:
            self._flight.ended(_NAMES.get(fd, f"fd{fd}"))
        else:
            self.transport.lose_stdin()
        self.protocol.pipe_connection_lost(fd, error)

    def process_exited(self) -> None:
        self._flight.exited(self.transport.get_returncode())
        self.protocol.process_exited()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.protocol, name)


class _Transport:
    """uvloop's transport; reports the program's calls on it."""

    def __init__(self, transport: Any, flight: Flight) -> None:
        self._transport = transport
        self._flight = flight
        stdin = transport.get_pipe_transport(0)
        self._stdin = None if stdin is None else _Stdin(stdin, flight)

    def get_pipe_transport(self, fd: int) -> Any:
        return self._stdin if fd == 0 else self._transport.get_pipe_transport(fd)

    def lose_stdin(self) -> None:
        """Note that the child has closed its end. The program will close its end because of that."""
        if self._stdin is not None:
            self._stdin.is_closed = True

    def send_signal(self, number: int) -> None:
        self._flight.signalled(number)
        self._transport.send_signal(number)

    def terminate(self) -> None:
        self._flight.signalled(15)
        self._transport.terminate()

    def kill(self) -> None:
        self._flight.signalled(9)
        self._transport.kill()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Stdin:
    """The transport of a child's stdin."""

    def __init__(self, transport: Any, flight: Flight) -> None:
        self._transport = transport
        self._flight = flight
        self.is_closed = False

    def write(self, data: Any) -> None:
        counts = self._flight.begin_write()
        try:
            self._transport.write(data)
        finally:
            self._flight.wrote(bytes(data), counts=counts)

    def writelines(self, pieces: Any) -> None:
        self.write(b"".join(pieces))

    def write_eof(self) -> None:
        self._transport.write_eof()
        self._close()

    def close(self) -> None:
        self._transport.close()
        self._close()

    def abort(self) -> None:
        self._transport.abort()
        self._close()

    def _close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._flight.ended("stdin", closed=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Played(unix_events._UnixSubprocessTransport):  # type: ignore[name-defined,misc]  # private
    """asyncio's transport on another loop, over a `Popen` that is played."""

    def watch(self) -> None:
        """Reap the stand-in, as the loop's child watcher would."""
        _thread.start_new_thread(self._reap, ())

    def _reap(self) -> None:
        code = self._proc.wait()
        with suppress(RuntimeError):  # the loop was closed before, and nothing waits for this
            self._loop.call_soon_threadsafe(self._process_exited, code)

    def _pipe_data_received(self, fd: int, data: bytes) -> None:
        self._proc._playhead_flight.heard(_NAMES[fd], data)
        super()._pipe_data_received(fd, data)

    def _pipe_connection_lost(self, fd: int, error: Exception | None) -> None:
        if fd:
            self._proc._playhead_flight.ended(_NAMES[fd])
        super()._pipe_connection_lost(fd, error)
