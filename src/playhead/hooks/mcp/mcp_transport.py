"""MCP's connections: stdio, SSE and streamable HTTP, where a client opens them. Knows transports;
what is said over them is `mcp_client`'s.

Opening one is a call. Where a replay answers it, the client gets a pair of streams with nobody at
the other end: requests are answered above, so that the server need not exist.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from playhead.hooks import answers
from playhead.hooks.guest import NotAsExpected, Patches, holders
from playhead.hooks.tools.tool_calls import ended_by
from playhead.recording import deck
from playhead.recording.deck import Call, Crossing

# Which function of which module; the older spelling of streamable HTTP wraps the newer one.
_OPENERS = ("stdio_client", "sse_client", "streamable_http_client", "streamablehttp_client")


def hook(module: ModuleType, patches: Patches) -> None:
    found = [
        name
        for name in _OPENERS
        if getattr(vars(module).get(name), "__module__", "") == module.__name__
    ]
    if not found:
        raise NotAsExpected(f"{module.__name__} has none of {', '.join(_OPENERS)}")
    for name in found:
        original = getattr(module, name)
        made = _wrap(original, name)
        for owner in holders(name, original):
            patches.replace(owner, name, partial(_same, made))


def _same(made: Any, original: Any) -> Any:
    return made


def _wrap(connect: Callable[..., Any], name: str) -> Callable[..., Any]:
    def connecting(*args: Any, **kwargs: Any) -> Any:
        open_deck = deck.active()
        if open_deck is None or open_deck.is_inside("mcp"):
            return connect(*args, **kwargs)
        return _Connection(name, args, kwargs, lambda: connect(*args, **kwargs))

    return connecting


class _Connection:
    """An async context manager around the library's own. The crossing encloses its opening and its
    closing (the server's process, the HTTP streams), and not what the client does in between.
    """

    def __init__(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], live: Callable[[], Any]
    ) -> None:
        self._name, self._request = name, _request(name, args, kwargs)
        self._live = live
        self._inner: Any = None
        self._crossing: Crossing | None = None

    async def __aenter__(self) -> Any:
        open_deck = deck.active()
        if open_deck is None:
            self._inner = self._live()
            return await self._inner.__aenter__()
        name = f"connect {self._name.partition('_')[0]}"
        crossing = self._crossing = open_deck.open(
            Call(boundary="mcp", name=name, request=self._request)
        )
        if crossing.taped is not None:
            told = answers.serve(crossing, {})
            self._inner = _Nobody(
                with_session_id=isinstance(told, dict) and bool(told.get("session_id"))
            )
            return await self._inner.__aenter__()
        with crossing:
            try:
                self._inner = self._live()
                streams = await self._inner.__aenter__()
            except BaseException as error:
                ended_by(crossing, error)
                raise
        # Whether there is a third part, which tells the session's id, depends on the version.
        crossing.returned({"session_id": len(streams) == 3})
        return streams

    async def __aexit__(self, *raised: object) -> Any:
        if self._crossing is None:
            return await self._inner.__aexit__(*raised)
        with self._crossing:
            return await self._inner.__aexit__(*raised)


class _Nobody:
    """Streams that take what is written and never have anything to read."""

    def __init__(self, *, with_session_id: bool) -> None:
        self._with_session_id = with_session_id
        self._streams: tuple[Any, ...] = ()

    async def __aenter__(self) -> tuple[Any, ...]:
        make = sys.modules["anyio"].create_memory_object_stream
        never, reading = make(0)
        writing, taken = make(float("inf"))
        self._streams = (never, reading, writing, taken)
        return (reading, writing, lambda: None) if self._with_session_id else (reading, writing)

    async def __aexit__(self, *raised: object) -> None:
        for stream in self._streams:
            stream.close()


def _request(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What is connected to. Not headers and timeouts: secrets, and no part of who it is."""
    if name != "stdio_client":
        return {"url": str(args[0] if args else kwargs.get("url"))}
    server = args[0] if args else kwargs.get("server")
    cwd = getattr(server, "cwd", None)
    return {
        "command": getattr(server, "command", None),
        "args": list(getattr(server, "args", None) or ()),
        "env": dict(getattr(server, "env", None) or {}),
        "cwd": None if cwd is None else str(cwd),
    }
