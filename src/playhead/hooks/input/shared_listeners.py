"""Separate listeners that several processes share. Worker processes of gunicorn and uvicorn accept from a socket that
their parent has bound, and the system decides which of them gets a connection.

In a replay each process gets a separate listener under the same descriptor, so that each taped connection reaches the
process that had it. Knows sockets; does not know the code that accepts or connects.
"""

from __future__ import annotations

import _socket
import os
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from playhead.hooks.guest import Patches, need
from playhead.hooks.input.inbound import loopback
from playhead.host import own_listeners
from playhead.host.later import Later

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from playhead.replay.time import virtual_time
else:
    virtual_time = Later("playhead.replay.time.virtual_time")  # a recorded program never loads it

_BACKLOG = 128
# How long a worker without requests waits for its parent: the parent waits for the slowest of them.
_PATIENCE_S = 60.0
# The address that a separated listener had before: hypercorn prints it.
_shown: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
# The process that has bound each socket.
_bound_by: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is socket."""
    need(module.socket, "bind")
    patches.replace(module.socket, "bind", _bind)
    patches.replace(module.socket, "getsockname", _getsockname)
    patches.on_undo(_shown.clear)


def _bind(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def bind(self: Any, address: Any, /) -> None:
        original(self, address)
        _bound_by[self] = os.getpid()

    return bind


def _getsockname(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def getsockname(self: Any) -> Any:
        shown = _shown.get(self)
        return original(self) if shown is None else shown

    return getsockname


def bound_at(fd: int) -> Any:
    """Return the socket with this descriptor that the program has bound to an address; None if there is none."""
    return next((one for one in list(_bound_by) if one.fileno() == fd), None)


def is_shared(listener: Any) -> bool:
    """Return whether another process has bound this socket."""
    return _bound_by.get(listener) != os.getpid()


def separate(listener: Any) -> Any:
    """Put a listener that only this process has under the descriptor. Return its address.

    From here on this process may wait longer than others before the replay gives up, because its parent ends it.
    """
    time = virtual_time.active()
    if time is not None:
        time.stall_s = max(time.stall_s, _PATIENCE_S)
    address = listener.getsockname()
    host, *_ = loopback(address)
    own = _socket.socket(listener.family, _socket.SOCK_STREAM)
    try:
        own.bind((host, 0))
        own.listen(_BACKLOG)
        fd = listener.fileno()
        is_blocking, is_inheritable = os.get_blocking(fd), os.get_inheritable(fd)
        os.dup2(own.fileno(), fd, is_inheritable)
        os.set_blocking(fd, is_blocking)
        own_listeners.add(own.getsockname())
        _shown[listener] = address
        return own.getsockname()
    finally:
        own.close()
