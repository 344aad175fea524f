"""Record the stdin of asyncio's subprocesses, and feed their output in the recorded iteration of the loop.

asyncio gives `Popen` one end of a socket pair as stdin, and sets the other end as the attribute in which `Popen` would
keep a pipe. `process.popen` handles the rest of such a child.

In a replay the loop does not wait for a pipe to become readable: another thread would fill it, some iterations too
early or too late. The loop waits for the place of each piece on the tape, as it does for timers. There the player
writes that one piece into the pipe, and the transport reads it in the same callback. So the program gets the recorded
pieces, each in the recorded iteration of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.order import event_loops
from playhead.hooks.process.flight import Flight, read_by_loop
from playhead.hooks.process.pipes import Tapped, reader_of, tap
from playhead.recording import order_slot, points


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is asyncio.unix_events."""
    need(module, "_UnixSubprocessTransport", "selector_events", "events")
    need(module._UnixSubprocessTransport, "_start")
    patches.replace(module._UnixSubprocessTransport, "_start", _start)
    if points.active() is not None:
        return  # not while recording: sockets use `_add_reader`, too
    loop = module.selector_events.BaseSelectorEventLoop
    need(loop, "_add_reader", "_remove_reader")
    patches.replace(loop, "_add_reader", _add_reader_of(module.events))
    patches.replace(loop, "_remove_reader", _remove_reader)


def _start(original: Callable[..., None]) -> Callable[..., None]:
    def _start(self: Any, *args: Any, **kwargs: Any) -> None:
        token = read_by_loop.set(True)
        try:
            original(self, *args, **kwargs)
        finally:
            read_by_loop.reset(token)
        popen = self._proc
        flight: Flight | None = getattr(popen, "_playhead_flight", None)
        if flight is not None and popen.stdin is not None and not isinstance(popen.stdin, Tapped):
            popen.stdin = tap(popen.stdin, flight, "stdin", 0)

    return _start


def _add_reader_of(handles: ModuleType) -> Callable[[Any], Any]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def _add_reader(self: Any, fd: Any, callback: Any, *args: Any) -> Any:
            # The loop keeps its reader: a piece that does not fit into the pipe comes in parts.
            made = original(self, fd, callback, *args)
            known = reader_of(fd) if order_slot.active() is not None else None
            if known is not None and known[0].player is not None:
                known[0].player.attach(known[1], _Feed(self, handles, callback, args).pend)
            return made

        return _add_reader

    return wrap


def _remove_reader(original: Callable[..., Any]) -> Callable[..., Any]:
    def _remove_reader(self: Any, fd: Any) -> Any:
        known = reader_of(fd) if order_slot.active() is not None else None
        if known is not None and known[0].player is not None:
            known[0].player.detach(known[1])
        return original(self, fd)

    return _remove_reader


class _Feed:
    """A transport that reads a stream of a taped process in an event loop."""

    def __init__(self, loop: Any, handles: ModuleType, read: Any, args: tuple[Any, ...]) -> None:
        self._loop = loop
        self._handles = handles
        self._read = read
        self._args = args

    def pend(self, place: Any, show: Callable[[], bool]) -> Callable[[], None]:
        """Call `show` when the loop reaches the place, and read if it returns True. Returns the function that
        cancels it.
        """
        loop, state = self._loop, event_loops.state_of(self._loop)

        def read() -> None:
            if show():
                self._read(*self._args)

        def run() -> None:
            loop._ready.append(self._handles.Handle(read, (), loop))

        def call_soon(take: Callable[[], bool]) -> None:
            event_loops.call_if_due(loop, take, read)

        pending = state.pend(place, run, loop.is_closed, call_soon)
        pending.comes_last = True
        return lambda: state.drop(pending)
