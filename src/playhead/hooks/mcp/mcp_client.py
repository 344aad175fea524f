"""Record and replay the requests of MCP clients, where a session sends them.

A result is recorded as the JSON that the server sent, and validated again in a replay. The hints that a server
gives with its tools (readOnlyHint, destructiveHint) become the effect of their calls. Knows `ClientSession` of mcp 1.x
and 2.x, and so covers every framework that uses it; transports are in `mcp_transport`.
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
from playhead.hooks.tools.tool_calls import effect_hinted
from playhead.recording import deck
from playhead.recording.adapter import Adapter
from playhead.recording.deck import Call, Crossing

_PROGRESS = "progress"


@dataclass(slots=True)
class _Server:
    """The facts that a session has learnt about its server."""

    name: str | None = None
    effects: dict[str, Effect] = field(default_factory=dict)


_servers: WeakKeyDictionary[Any, _Server] = WeakKeyDictionary()


def hook(module: ModuleType, patches: Patches) -> None:
    session = module.ClientSession
    need(session, "send_request", "initialize", "call_tool")
    # All typed methods (`call_tool`, `list_tools`, `read_resource`…) end here with a typed request and the
    # type of its result, so one hook covers requests that are added later. Notifications do not pass; they
    # expect no answer.
    patches.replace(session, "send_request", _wrap_request)
    if hasattr(session, "send_discover"):  # since 2.0: a probe that goes past send_request
        patches.replace(session, "send_discover", _wrap_discover)


class _Request(Adapter):
    """One request of a session."""

    # Progress notifications arrive before the result: the adapter hands them out itself.
    streams = True

    def __init__(
        self,
        session: Any,
        result_type: Any,
        callback: Callable[..., Any] | None,
        send: Callable[[Callable[..., Any] | None], Any],
    ) -> None:
        self._session = session
        self._result_type = result_type
        self._callback = callback
        self._send = send

    def live(self, crossing: Crossing) -> Any:
        callback = self._callback
        return self._send(None if callback is None else _observed_progress(crossing, callback))

    def observe(self, crossing: Crossing, result: Any) -> Any:
        # Only the fields that the server sent: a newer library fills in defaults that an older one does not
        # know.
        raw = _dumped(result, exclude_unset=True)
        failed = isinstance(raw, dict) and raw.get("isError")
        crossing.returned(raw, **({"status": "error"} if failed else {}))
        return _learnt(self._session, crossing, result, raw)

    async def serve(self, crossing: Crossing) -> Any:
        await _serve_progress(crossing, self._callback)
        await crossing.reach_end_async()

        def build(raw: Any) -> Any:
            return _learnt(self._session, crossing, _valid(self._result_type, raw), raw)

        return answers.serve(crossing, _types(), build)


class _Discovery(Adapter):
    """The probe that a session of mcp 2.x sends past `send_request`."""

    def __init__(self, send: Callable[[], Any]) -> None:
        self._send = send

    def live(self, crossing: Crossing) -> Any:
        return self._send()

    def serve(self, crossing: Crossing) -> Any:
        return answers.serve(crossing, _types())


def _wrap_request(send: Callable[..., Any]) -> Callable[..., Any]:
    async def sent(self: Any, request: Any, result_type: Any, *args: Any, **kwargs: Any) -> Any:
        open_deck = deck.active()
        if open_deck is None:
            return await send(self, request, result_type, *args, **kwargs)

        def really(callback: Callable[..., Any] | None) -> Any:
            if callback is not None:
                kwargs["progress_callback"] = callback
            return send(self, request, result_type, *args, **kwargs)

        dumped = _dumped(request, exclude_none=True)
        call = _call(self, str(dumped.get("method", "")), dumped.get("params"))
        adapter = _Request(self, result_type, kwargs.get("progress_callback"), really)
        return await open_deck.perform_async(call, adapter)

    return sent


def _wrap_discover(send: Callable[..., Any]) -> Callable[..., Any]:
    async def sent(self: Any, version: str) -> Any:
        open_deck = deck.active()
        if open_deck is None:
            return await send(self, version)
        call = _call(self, "server/discover", {"version": version})
        return await open_deck.perform_async(call, _Discovery(lambda: send(self, version)))

    return sent


def _call(session: Any, method: str, params: Any) -> Call:
    server = _servers.get(session) or _Server()
    params = params if isinstance(params, dict) else {}
    request: dict[str, Any] = {"method": method}
    name = server.name or getattr(getattr(session, "server_info", None), "name", None)
    if name is not None:
        request["server"] = str(name)
    # Tool calls are named after the tool, so that reports, policies and effects work as for other tools.
    if method != "tools/call":
        return Call(boundary="mcp", name=method, request={**request, "params": params})
    tool = str(params.get("name", ""))
    rest = {key: item for key, item in params.items() if key not in ("name", "arguments")}
    request["arguments"] = params.get("arguments") or {}
    if rest:
        request["params"] = rest
    return Call(
        boundary="mcp",
        name=tool,
        request=request,
        effect=server.effects.get(tool),
        facts={"library": "mcp"},
    )


def _dumped(model: Any, **how: bool) -> Any:
    """Serialise a model to JSON as it is sent. The models are the library's own: no code of the program runs."""
    try:
        return model.model_dump(by_alias=True, mode="json", **how)
    except Exception:  # noqa: BLE001  not the model that we expect: recorded, but never served
        return model if how.get("exclude_unset") else {}


def _valid(result_type: Any, raw: Any) -> Any:
    """Validate the server's JSON as `send_request` does."""
    if isinstance(result_type, type):
        return result_type.model_validate(raw)  # type: ignore[attr-defined]  # a pydantic model
    # mcp 2.x passes TypeAdapters for unions; by alias, because the tape has the names of the wire.
    return result_type.validate_python(raw, by_name=False)


def _learnt(session: Any, crossing: Crossing, result: Any, raw: Any) -> Any:
    """Remember the server's name and the hints about its tools."""
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


def _observed_progress(crossing: Crossing, callback: Callable[..., Any]) -> Callable[..., Any]:
    async def reported(progress: float, total: float | None, message: str | None) -> None:
        crossing.chunk(encode_std([progress, total, message]) + b"\n", _PROGRESS)
        await callback(progress, total, message)

    return reported


async def _serve_progress(crossing: Crossing, callback: Callable[..., Any] | None) -> None:
    for point, piece in enumerate(crossing.taped.pieces if crossing.taped is not None else ()):
        if piece.stream == _PROGRESS and callback is not None:
            await crossing.reach_async(point)
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
