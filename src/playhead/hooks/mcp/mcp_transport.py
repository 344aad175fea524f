"""Record and replay the opening of MCP connections: stdio, SSE and streamable HTTP.

Opening a connection is a call. A replay gives the client a pair of streams without a peer. `mcp_client` answers the
requests above them, so that the server need not exist. Knows transports; requests are in `mcp_client`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from playhead.hooks import answers
from playhead.hooks.guest import NotAsExpected, Patches, holders
from playhead.hooks.process.output_files import ServerOutput
from playhead.recording import deck
from playhead.recording.adapter import Adapter
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


class _Connection(Adapter):
    """An async context manager around the library's own, and the adapter of its opening.

    The crossing encloses the opening and the closing (the server's process, the HTTP streams), and not what
    the client does in between.
    """

    def __init__(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], connect: Callable[[], Any]
    ) -> None:
        self._name, self._request = name, _request(name, args, kwargs)
        self._connect = connect
        self._inner: Any = None
        self._streams: Any = None
        self._crossing: Crossing | None = None
        # In a replay: the taped output of the server to stderr.
        self._output: ServerOutput | None = None

    async def __aenter__(self) -> Any:
        open_deck = deck.active()
        if open_deck is None:
            return await self._enter()
        name = f"connect {self._name.partition('_')[0]}"
        call = Call(boundary="mcp", name=name, request=self._request)
        await open_deck.perform_async(call, self)
        # A taped connection is opened here, because opening its streams awaits.
        return self._streams or await self._inner.__aenter__()

    async def __aexit__(self, *raised: object) -> Any:
        if self._crossing is None:
            return await self._inner.__aexit__(*raised)
        with self._crossing:
            try:
                return await self._inner.__aexit__(*raised)
            finally:
                if self._output is not None:
                    self._output.end()

    def live(self, crossing: Crossing) -> Any:
        self._crossing = crossing
        return self._enter()

    async def _enter(self) -> Any:
        self._inner = self._connect()
        return await self._inner.__aenter__()

    def observe(self, crossing: Crossing, result: Any) -> Any:
        self._streams = result
        # Whether there is a third part, which gives the session's id, depends on the version.
        crossing.returned({"session_id": len(result) == 3})
        return result

    def serve(self, crossing: Crossing) -> Any:
        self._crossing = crossing
        value = answers.serve(crossing, {})
        if crossing.taped is not None and crossing.taped.printed:
            self._output = ServerOutput(crossing.taped.printed)
        self._inner = _Peerless(
            with_session_id=isinstance(value, dict) and bool(value.get("session_id"))
        )


class _Peerless:
    """Streams that discard writes and never have anything to read."""

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
    """Return the identity of the server, without timeouts, and without headers, which hold secrets."""
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
