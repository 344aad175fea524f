"""MCP, the client's side: every request of a session, where it is sent. Knows `ClientSession` of
mcp 1.x and 2.x, and through it every framework that speaks MCP; not how the bytes travel.

A result is kept as the JSON that the server sent and validated again in a replay. The hints that a
server gives with its tools (readOnlyHint, destructiveHint) are the effect of their calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from playhead.encoding.jsonbytes import decode_std, encode_std
from playhead.events import Effect
from playhead.hooks import answers
from playhead.hooks.answers import Named
from playhead.hooks.guest import Patches, need
from playhead.hooks.tools.tool_calls import effect_hinted, ended_by, given_up
from playhead.recording import deck
from playhead.recording.deck import Call, Crossing, Deck

_PROGRESS = "progress"


@dataclass(slots=True)
class _Server:
    """What a session has learnt of the server at its other end."""

    name: str | None = None
    effects: dict[str, Effect] = field(default_factory=dict)


_servers: WeakKeyDictionary[Any, _Server] = WeakKeyDictionary()


def hook(module: ModuleType, patches: Patches) -> None:
    session = module.ClientSession
    need(session, "send_request", "initialize", "call_tool")
    patches.replace(session, "send_request", _wrap_request)
    if hasattr(session, "send_discover"):  # since 2.0: a probe that goes past send_request
        patches.replace(session, "send_discover", _wrap_discover)


def _wrap_request(send: Callable[..., Any]) -> Callable[..., Any]:
    async def sent(self: Any, request: Any, result_type: Any, *args: Any, **kwargs: Any) -> Any:
        open_deck = deck.active()
        if open_deck is None:
            return await send(self, request, result_type, *args, **kwargs)
        asked = _dumped(request, exclude_none=True)
        crossing = _open(open_deck, self, str(asked.get("method", "")), asked.get("params"))
        if crossing.taped is not None:
            await given_up(crossing)
            await _progress_again(crossing, kwargs.get("progress_callback"))
            return answers.serve(
                crossing,
                _types(),
                lambda raw: _learnt(self, crossing, _valid(result_type, raw), raw),
            )
        if kwargs.get("progress_callback") is not None:
            kwargs["progress_callback"] = _tee_progress(crossing, kwargs["progress_callback"])
        with crossing:
            try:
                result = await send(self, request, result_type, *args, **kwargs)
            except BaseException as error:
                ended_by(crossing, error)
                raise
        raw = _dumped(result, exclude_unset=True)
        crossing.returned(
            raw, **({"status": "error"} if isinstance(raw, dict) and raw.get("isError") else {})
        )
        return _learnt(self, crossing, result, raw)

    return sent


def _wrap_discover(send: Callable[..., Any]) -> Callable[..., Any]:
    async def sent(self: Any, version: str) -> Any:
        open_deck = deck.active()
        if open_deck is None:
            return await send(self, version)
        crossing = _open(open_deck, self, "server/discover", {"version": version})
        if crossing.taped is not None:
            await given_up(crossing)
            return answers.serve(crossing, _types())
        with crossing:
            try:
                raw = await send(self, version)
            except BaseException as error:
                ended_by(crossing, error)
                raise
        crossing.returned(raw)
        return raw

    return sent


def _open(open_deck: Deck, session: Any, method: str, params: Any) -> Crossing:
    server = _servers.get(session) or _Server()
    params = params if isinstance(params, dict) else {}
    request: dict[str, Any] = {"method": method}
    name = server.name or getattr(getattr(session, "server_info", None), "name", None)
    if name is not None:
        request["server"] = str(name)
    if method != "tools/call":
        return open_deck.open(
            Call(boundary="mcp", name=method, request={**request, "params": params})
        )
    tool = str(params.get("name", ""))
    rest = {key: item for key, item in params.items() if key not in ("name", "arguments")}
    request["arguments"] = params.get("arguments") or {}
    if rest:
        request["params"] = rest
    return open_deck.open(
        Call(
            boundary="mcp",
            name=tool,
            request=request,
            effect=server.effects.get(tool),
            facts={"library": "mcp"},
        )
    )


def _dumped(model: Any, **how: bool) -> Any:
    """As it goes over the wire. The library's own models: nothing of the host's runs."""
    try:
        return model.model_dump(by_alias=True, mode="json", **how)
    except Exception:  # noqa: BLE001  not the model that we think: kept, and never served
        return model if how.get("exclude_unset") else {}


def _valid(result_type: Any, raw: Any) -> Any:
    """The result as `send_request` makes it of the server's JSON."""
    if isinstance(result_type, type):
        return result_type.model_validate(raw)  # type: ignore[attr-defined]  # a pydantic model
    return result_type.validate_python(raw, by_name=False)


def _learnt(session: Any, crossing: Crossing, result: Any, raw: Any) -> Any:
    """Remember who the server is, and what it says of its tools."""
    method = crossing.call.request.get("method")
    if method not in ("initialize", "tools/list") or not isinstance(raw, dict):
        return result
    server = _servers.setdefault(session, _Server())
    if method == "initialize":
        server.name = str((raw.get("serverInfo") or {}).get("name", "")) or None
    for tool in raw.get("tools") or ():
        effect = effect_hinted(tool.get("annotations") or {})
        if effect is not None:
            server.effects[str(tool.get("name"))] = effect
    return result


def _tee_progress(crossing: Crossing, callback: Callable[..., Any]) -> Callable[..., Any]:
    async def told(progress: float, total: float | None, message: str | None) -> None:
        crossing.chunk(encode_std([progress, total, message]) + b"\n", _PROGRESS)
        await callback(progress, total, message)

    return told


async def _progress_again(crossing: Crossing, callback: Callable[..., Any] | None) -> None:
    for piece in crossing.taped.pieces if crossing.taped is not None else ():
        if piece.stream == _PROGRESS and callback is not None:
            crossing.chunk(piece.data, _PROGRESS)
            await callback(*decode_std(piece.data))


def _types() -> Named:
    errors, types, anyio = (
        sys.modules.get(name) for name in ("mcp.shared.exceptions", "mcp.types", "anyio")
    )
    return answers.classes(
        *(getattr(errors, name, None) for name in dir(errors) if name.endswith("Error")),
        getattr(types, "ErrorData", None),
        *(
            getattr(anyio, name, None)
            for name in ("ClosedResourceError", "BrokenResourceError", "EndOfStream")
        ),
    )
