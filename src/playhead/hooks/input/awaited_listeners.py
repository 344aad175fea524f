"""Start the taped clients of a listener when the program waits for it. Installed in a replay only.

A program may accept only when `select`, `poll` or `epoll` reports a connection, as gunicorn with threads does. Then
clients that start at the first `accept` (`threaded_servers`) would never start. Knows the functions of `select`, which
`selectors` uses as well; does not know servers.
"""

from __future__ import annotations

import _socket
import contextlib
import sys
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.input import shared_listeners, threaded_servers
from playhead.hooks.replacements import Builtin, graft

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is select."""
    need(module, "select", "poll")
    patches.replace(module, "select", lambda original: Builtin(_select(original)))
    poll = type(module.poll())
    graft(patches, poll, "register", _register(poll.register))
    if hasattr(module, "epoll"):
        graft(patches, module.epoll, "register", _register(module.epoll.register))


def _select(original: Callable[..., Any]) -> Callable[..., Any]:
    def select(r: Any, *more: Any) -> Any:
        r = list(r)
        for one in r:
            _wait_for(one, sys._getframe(2))  # below it is the call of `Builtin`
        return original(r, *more)

    return select


def _register(original: Callable[..., Any]) -> Callable[..., Any]:
    def register(self: Any, fd: Any, *more: Any, **named: Any) -> Any:
        # First: it may put another listener under the descriptor, of which `epoll` would not know.
        _wait_for(fd, sys._getframe(1))
        return original(self, fd, *more, **named)

    return register


def _wait_for(waited: Any, frame: Any) -> None:
    while frame is not None and frame.f_globals.get("__name__") == "selectors":
        frame = frame.f_back
    # gunicorn waits for an object of its own around the socket, so the descriptor decides.
    with contextlib.suppress(AttributeError, OSError):
        listener = shared_listeners.bound_at(waited if isinstance(waited, int) else waited.fileno())
        if listener is not None and listener.getsockopt(_socket.SOL_SOCKET, _socket.SO_ACCEPTCONN):
            threaded_servers.follow_listener(listener, frame)
