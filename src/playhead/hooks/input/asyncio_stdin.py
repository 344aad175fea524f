"""Record an event loop's reads of stdin: `connect_read_pipe` is one call, with a piece for each arrival of data.

A replay connects another pipe, and writes each piece to it when the replay reaches the place of the piece. So timers
and other tasks keep their order. Knows `connect_read_pipe`; does not know what the program does with the data.
"""

from __future__ import annotations

import os
import sys

from playhead.hooks.guest import Patches, need
from playhead.hooks.input import input_slot
from playhead.recording import deck
from playhead.recording.adapter import Adapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.recording.crossing import Crossing


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is asyncio.base_events."""
    need(module.BaseEventLoop, "connect_read_pipe")
    patches.replace(module.BaseEventLoop, "connect_read_pipe", _connect_read_pipe)


def hook_uvloop(module: ModuleType, patches: Patches) -> None:
    """A replay gives the program asyncio's loop: see `ambient.waiting_selectors`."""
    patches.replace(module.Loop, "connect_read_pipe", _connect_read_pipe)


def _connect_read_pipe(original: Callable[..., Any]) -> Callable[..., Any]:
    async def connect_read_pipe(self: Any, protocol_factory: Callable[[], Any], pipe: Any) -> Any:
        open_deck = input_slot.deck_for_read() if _is_run_stdin(pipe) else None
        if open_deck is None:
            return await original(self, protocol_factory, pipe)
        call = deck.Call(boundary="input", name=input_slot.NAME, facts={"via": "connect_read_pipe"})

        def connect(factory: Callable[[], Any], end: Any) -> Any:
            return original(self, factory, end)

        adapter = _Arrivals(self, connect, protocol_factory, pipe)
        return await open_deck.perform_async(call, adapter)

    return connect_read_pipe


def _is_run_stdin(pipe: Any) -> bool:
    try:
        return input_slot.is_run_stdin(pipe.fileno())
    except (AttributeError, OSError, ValueError):
        return False


class _Arrivals(Adapter):
    """The data that arrives on stdin while an event loop reads it."""

    __slots__ = ("_connect", "_factory", "_feeding", "_loop", "_pipe")

    streams = True

    def __init__(
        self, loop: Any, connect: Callable[..., Any], factory: Callable[[], Any], pipe: Any
    ) -> None:
        self._loop = loop
        self._connect = connect
        self._factory = factory
        self._pipe = pipe
        self._feeding: Any = None

    async def live(self, crossing: Crossing) -> Any:
        input_slot.watch(crossing)
        return await self._connect(lambda: _observed(self._factory(), crossing), self._pipe)

    def observe(self, crossing: Crossing, result: Any) -> Any:
        return result  # the protocol ends the crossing

    async def serve(self, crossing: Crossing) -> Any:
        reader, writer = os.pipe()
        file = os.fdopen(reader, "rb", 0)
        connected = await self._connect(lambda: _observed(self._factory(), crossing), file)
        # Not `create_task`, which would count it as a task of the program: its lane is the caller's.
        tasks = sys.modules["asyncio"]
        self._feeding = tasks.Task(_feed(crossing, writer), loop=self._loop)
        connected[0]._playhead_feeding = self._feeding  # asyncio keeps only a weak reference
        return connected


async def _feed(crossing: Crossing, writer: int) -> None:
    """Fill the pipe as stdin was filled in the recorded run. If the tape has no end of stdin, the pipe stays open."""
    taped = crossing.taped
    if taped is None:
        raise AssertionError("only a taped call is served")
    for index, piece in enumerate(taped.pieces):
        await crossing.reach_async(index)
        data = piece.data
        while data:
            data = data[os.write(writer, data[:65536]) :]
    if taped.how == "returned":
        await crossing.reach_last_async()
        os.close(writer)


def _observed(protocol: Any, crossing: Crossing) -> Any:
    """Return the protocol with methods that also report the data they receive. They are set on the instance, where
    loops look them up.
    """
    received, eof, lost = protocol.data_received, protocol.eof_received, protocol.connection_lost

    def data_received(data: bytes) -> None:
        crossing.chunk(data)
        received(data)

    def eof_received() -> Any:
        input_slot.forget(crossing)
        crossing.returned()
        return eof()

    def connection_lost(error: BaseException | None) -> None:
        input_slot.forget(crossing)
        crossing.left()  # ignored after the end of the input
        lost(error)

    try:
        protocol.data_received = data_received
        protocol.eof_received = eof_received
        protocol.connection_lost = connection_lost
    except AttributeError:
        crossing.deck.unfollowed("input", "stdin", "its protocol cannot be observed")
    return protocol
