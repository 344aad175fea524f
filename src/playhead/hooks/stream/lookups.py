"""Record look-ups of host names. A look-up is a call, and a replay answers it from the tape, without a resolver.

Look-ups of clients that another boundary records are left alone, because a replay does not make them. So are names
that need no resolver. Knows `socket.getaddrinfo`, `socket.gethostbyname` and the loop of asyncio.
"""

from __future__ import annotations

import _socket
import socket
import sys

from playhead.hooks.guest import Patches, need
from playhead.hooks.replacements import like_builtin
from playhead.hooks.stream import sockets
from playhead.recording import deck
from playhead.recording.adapter import Adapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.recording.crossing import Crossing
    from playhead.recording.deck import Deck

# Libraries whose jobs in other threads look names up for a loop. The hook of the loop has recorded the look-up.
_WORKERS = ("concurrent", "asyncio", "playhead")


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is socket."""
    need(module, "getaddrinfo", "gethostbyname")
    patches.replace(module, "getaddrinfo", _getaddrinfo)
    patches.replace(module, "gethostbyname", like_builtin(_gethostbyname))


def hook_loop(module: ModuleType, patches: Patches) -> None:
    """`module` is asyncio.base_events."""
    need(module.BaseEventLoop, "getaddrinfo")
    patches.replace(module.BaseEventLoop, "getaddrinfo", _loop_getaddrinfo)


class _LookUp(Adapter):
    """One look-up. The tape has the rows of `getaddrinfo` as plain values."""

    __slots__ = ("_look_up",)

    def __init__(self, look_up: Callable[[], Any]) -> None:
        self._look_up = look_up

    def live(self, crossing: Crossing) -> Any:
        return self._look_up()

    def observe(self, crossing: Crossing, result: Any) -> Any:
        if isinstance(result, str):
            crossing.returned(result)
        else:
            crossing.returned([[*map(int, row[:3]), row[3], list(row[4])] for row in result])
        return result

    def serve(self, crossing: Crossing) -> Any:
        value = super().serve(crossing)
        if not isinstance(value, list):
            return value
        return [
            (_family(family), _kind(kind), proto, name, tuple(address))
            for family, kind, proto, name, address in value
        ]


def _family(number: int) -> Any:
    try:
        return socket.AddressFamily(number)
    except ValueError:
        return number


def _kind(number: int) -> Any:
    try:
        return socket.SocketKind(number)
    except ValueError:
        return number


def _getaddrinfo(original: Callable[..., Any]) -> Callable[..., Any]:
    def getaddrinfo(  # noqa: PLR0917  its signature
        host: Any,
        port: Any,
        family: int = 0,
        type: int = 0,  # noqa: A002
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        open_deck = _deck_for(host, sys._getframe(1), in_thread=True)
        if open_deck is None:
            return original(host, port, family, type, proto, flags)
        call = _call(host, port, family, type, proto, flags)
        return open_deck.perform(
            call, _LookUp(lambda: original(host, port, family, type, proto, flags))
        )

    return getaddrinfo


def _gethostbyname(original: Callable[[str], str]) -> Callable[[str], str]:
    def gethostbyname(hostname: str) -> str:
        # The caller of the `Builtin` that calls this function.
        open_deck = _deck_for(hostname, sys._getframe(2), in_thread=True)
        if open_deck is None:
            return original(hostname)
        found: str = open_deck.perform(_call(hostname), _LookUp(lambda: original(hostname)))
        return found

    return gethostbyname


def _loop_getaddrinfo(original: Callable[..., Any]) -> Callable[..., Any]:
    async def getaddrinfo(
        self: Any,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        options = {"family": family, "type": type, "proto": proto, "flags": flags}
        open_deck = _deck_for(host, sys._getframe(1), in_thread=False)
        if open_deck is None:
            return await original(self, host, port, **options)
        call = _call(host, port, family, type, proto, flags)
        return await open_deck.perform_async(
            call, _LookUp(lambda: original(self, host, port, **options))
        )

    return getaddrinfo


def _call(host: Any, *more: Any) -> Any:
    name = _text(host)
    request = {
        "host": name,
        "options": [one if isinstance(one, str) else int(one or 0) for one in more],
    }
    return deck.Call(boundary="stream", name=f"look up {name}", request=request)


def _deck_for(host: Any, frame: Any, *, in_thread: bool) -> Deck | None:
    open_deck = deck.active()
    if open_deck is None or not host or _needs_no_resolver(_text(host)):
        return None
    if in_thread and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _WORKERS:
        return None
    return None if sockets.is_claimed(open_deck, frame) else open_deck


def _needs_no_resolver(host: str) -> bool:
    if host in ("localhost", _socket.gethostname()):
        return True
    return ":" in host or host.replace(".", "").isdigit()


def _text(host: Any) -> str:
    return host.decode("utf-8", "replace") if isinstance(host, (bytes, bytearray)) else str(host)
