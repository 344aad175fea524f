"""Keep the order in which threads log to stdout and stderr through `logging`.

A handler holds its own lock while it writes. In a replay, a thread that holds this lock and waits for the place of its
write would block all other threads. So the thread waits for its place before it acquires the lock.

A replay opens no connections. So messages of level DEBUG that HTTP libraries log about connections are marked on the
tape, left out in a replay, and not compared by the report. Other levels, and handlers that write elsewhere, are left
as they are.

Knows `logging.Handler`; the place itself is passed in `outputs`, where the stream is written to.
"""

from __future__ import annotations

import _thread
import sys

from playhead.hooks.guest import Patches, need
from playhead.hooks.order.outputs import logging_transports
from playhead.recording import lanes, order_slot, points, scopes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


_DEBUG = 10
# Loggers of libraries that transport requests, below the hooks on clients.
_TRANSPORTS = frozenset({"httpcore", "httpcore2", "urllib3", "h11", "h2", "hpack"})
# What aiohttp logs through its event loop when the program has not closed a session. A replay has the session, but no
# connections.
_UNCLOSED = ("Unclosed connector\n", "Unclosed connection\n")


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is logging."""
    need(module, "Handler")
    need(module.Handler, "handle", "acquire")
    patches.replace(module.Handler, "handle", _handle)


def _handle(original: Callable[..., Any]) -> Callable[..., Any]:
    def handle(self: Any, record: Any) -> Any:
        if getattr(self, "stream", None) not in (sys.stdout, sys.stderr):
            return original(self, record)
        if _is_of_transport(record):
            if scopes.is_replay():
                return False
            if points.active() is not None:
                return _mark(original, self, record)
        _await_output()
        return original(self, record)

    return handle


def _is_of_transport(record: Any) -> bool:
    """Return whether an HTTP library logs this about its connections, outside of a tool. The log of a tool is part of
    the tool's output, which a replay prints again.
    """
    if record.name == "asyncio":
        is_transport = str(record.msg).startswith(_UNCLOSED)
    else:
        is_transport = record.levelno <= _DEBUG and record.name.partition(".")[0] in _TRANSPORTS
    return is_transport and lanes.printing.get() is None


def _mark(original: Callable[..., Any], handler: Any, record: Any) -> Any:
    me = _thread.get_ident()
    logging_transports.add(me)
    try:
        return original(handler, record)
    finally:
        logging_transports.discard(me)


def _await_output() -> None:
    head = order_slot.active()
    # The thread of an event loop does not wait: its other tasks could not reach their points.
    if head is None or not lanes.have_threads() or lanes.is_carried() or order_slot.loop_here():
        return
    place = head.ahead(lanes.current.get().name)
    if place is not None:
        head.await_turn(place)
