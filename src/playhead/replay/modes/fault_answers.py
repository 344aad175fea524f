"""What a failure looks like to the client that meets it: the answer it gets instead. Pure.

Knows the error shapes of the LLM APIs, and `Taped`; not when a fault fires.
"""

from __future__ import annotations

import builtins
import json
import sys
from dataclasses import replace
from typing import Any

from playhead.recording.calls import Call, Piece, Taped
from playhead.replay.modes.faults import Fault

_ANTHROPIC = {
    400: ("invalid_request_error", "The request was malformed."),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key may not use this resource."),
    404: ("not_found_error", "The requested resource was not found."),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    529: ("overloaded_error", "Overloaded"),
}
_OPENAI = {
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests."),
}
_GEMINI = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_REASONS = {
    429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout",
}  # fmt: skip


def answer_for(fault: Fault, call: Call, taped: Taped | None) -> Taped:
    """What `call` gets. `taped` is what it would get from the tape, if that has an answer."""
    match = {"rung": "fault", "fault": fault.spec}
    if fault.kind == "status":
        return replace(_refusal(int(fault.argument), call), match=match)
    if fault.kind == "cut" and taped is not None and taped.head is not None:
        return replace(_broken_off(taped, int(fault.argument)), match=match)
    if fault.kind in ("reset", "cut"):
        return Taped(how="cut", match=match)
    if fault.kind == "raise":
        return Taped(how="raised", error=_error(fault.argument), match=match)
    if fault.kind == "return":
        value = _value(fault.argument, call.boundary)
        return Taped(how="returned", value=value, frozen=value, match=match)
    code = -9 if fault.kind == "kill" else int(fault.argument)
    return Taped(how="returned", value=code, frozen=code, facts={"exit_code": code}, match=match)


def slowed(taped: Taped, fault: Fault) -> Taped:
    """The taped answer, so much later."""
    late = int(fault.argument)
    return replace(
        taped,
        took_ns=taped.took_ns + late,
        pieces=[replace(piece, at_ns=piece.at_ns + late) for piece in taped.pieces],
        facts={**taped.facts, "slow_ns": late},
        match={**taped.match, "fault": fault.spec},
    )


def _refusal(status: int, call: Call) -> Taped:
    body = json.dumps(_shape(status, str(call.facts.get("api", "")))).encode()
    headers = [
        ["content-type", "application/json"],
        ["content-length", str(len(body))],
        ["retry-after", "0"],
        # The SDKs take a wait of nothing for no advice; this one they follow.
        ["retry-after-ms", "1"],
    ]
    head = {
        "status": status, "reason": _REASONS.get(status, ""), "http_version": "HTTP/1.1", "headers": headers,
    }  # fmt: skip
    return Taped(how="returned", head=head, pieces=[Piece(stream="body", data=body, at_ns=0)])


def _shape(status: int, api: str) -> dict[str, Any]:
    if api == "anthropic.messages":
        kind, message = _ANTHROPIC.get(status, ("api_error", "Internal server error"))
        error = {"type": kind, "message": message}
        return {"type": "error", "error": error, "request_id": "req_playhead_fault"}
    if api == "gemini.generate":
        told = _GEMINI.get(status, "INTERNAL")
        return {"error": {"code": status, "message": "The request failed.", "status": told}}
    default = ("server_error", None, "The server had an error while processing your request.")
    kind, code, message = _OPENAI.get(status, default)
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _broken_off(taped: Taped, after: int) -> Taped:
    """The first `after` events of a stream, or pieces of a body; never the whole of it."""
    body = [piece for piece in taped.pieces if piece.stream == "body"]
    parts = _events(taped, body) or [piece.data for piece in body]
    kept = parts[: min(after, len(parts) - 1)]
    if not kept and parts:
        kept = [parts[0][: len(parts[0]) // 2]]
    pieces = [piece for piece in taped.pieces if piece.stream == "sent"]
    pieces += [Piece(stream="body", data=data, at_ns=0) for data in kept]
    facts = {name: item for name, item in taped.facts.items() if name != "sizes"}
    return replace(
        taped, how="cut", error=None, frozen_error=None, pieces=pieces, facts=facts, dies=None
    )


def _events(taped: Taped, body: list[Piece]) -> list[bytes]:
    """Server-sent events one by one: how the network packed them is chance."""
    headers = {str(name).lower(): str(value) for name, value in taped.head.get("headers") or ()}
    if "event-stream" not in headers.get("content-type", "") or "content-encoding" in headers:
        return []
    whole = b"".join(piece.data for piece in body).replace(b"\r\n", b"\n")
    return [event + b"\n\n" for event in whole.split(b"\n\n") if event]


def _error(named: str) -> BaseException:
    """`TimeoutError`, `TimeoutError:no answer`, `httpx.ReadTimeout`: a builtin, or a class of a module
    that the program has loaded.
    """
    name, _, message = named.partition(":")
    module, _, short = name.rpartition(".")
    found = getattr(sys.modules.get(module) if module else builtins, short, None)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        return RuntimeError(f"{name}: {message or 'injected by a fault'}")
    text = message or "injected by a fault"
    try:
        return found(text)
    except TypeError:  # a class of somebody's that wants other arguments
        made = found.__new__(found)
        made.args = (text,)
        return made


def _value(text: str, boundary: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if boundary != "mcp" or (isinstance(value, dict) and "content" in value):
        return value
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"content": [{"type": "text", "text": said}], "isError": False}
