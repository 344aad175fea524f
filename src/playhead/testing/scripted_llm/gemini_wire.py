"""Gemini generateContent: read requests, say replies, plain and streamed. Knows no socket."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from playhead.testing.scripted_llm.llm_script import Failure, Reply, pieces, stop_reason_of
from playhead.testing.scripted_llm.mint import Mint
from playhead.testing.scripted_llm.received import Request, Role, joined
from playhead.testing.scripted_llm.tokens import count
from playhead.testing.scripted_llm.wire import ROLES, Json, arguments_object, encode, text_of

DEFAULT_MODEL = "gemini-3.8-flash"
PATH = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>\w+)$")
_FINISH = {"max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}
_STATUS = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    403: ("PERMISSION_DENIED", "The caller does not have permission."),
    404: ("NOT_FOUND", "The requested resource was not found."),
    429: ("RESOURCE_EXHAUSTED", "You exceeded your current quota."),
    500: ("INTERNAL", "An internal error has occurred."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "The deadline expired before the operation could complete."),
}


class GeminiWire:
    """`POST …/models/MODEL:generateContent` and `:streamGenerateContent`."""

    name = "gemini"

    def read(self, request: Request) -> Request:
        found = PATH.search(request.path)
        body = request.json
        # countTokens may wrap the whole request that it asks about.
        body = body.get("generateContentRequest") or body
        instruction = body.get("systemInstruction") or body.get("system_instruction")
        spoken: list[tuple[Role, str]] = []
        if instruction:
            spoken.append(("system", _parts_text(instruction)))
        for content in body.get("contents") or []:
            role = ROLES.get(content.get("role", "user"), "user")
            spoken.append((role, _parts_text(content)))
        return replace(
            request,
            wire=self.name,
            model=found["model"] if found else None,
            stream=bool(found and found["verb"].startswith("stream")),
            messages=joined(spoken),
        )

    def whole(self, request: Request, reply: Reply, mint: Mint) -> Json:
        parts: list[Json] = []
        if reply.thinking:
            parts.append({"text": reply.thinking, "thought": True})
        if reply.text:
            parts.append({"text": reply.text})
        parts += _calls(reply, mint)
        return _chunk(request, reply, _response_id(mint), parts, finished=True)

    def events(self, request: Request, reply: Reply, mint: Mint) -> Iterator[Json]:
        parts: list[Json] = [
            {"text": part, "thought": True} for part in pieces(reply.thinking, reply.chunks)
        ]
        parts += [{"text": part} for part in pieces(reply.text, reply.chunks)]
        parts += _calls(reply, mint)
        response_id = _response_id(mint)
        last = max(0, len(parts) - 1)
        return (
            _chunk(request, reply, response_id, parts[at : at + 1], finished=at == last)
            for at in range(last + 1)
        )

    def frames(self, request: Request, events: Iterable[Json | str]) -> Iterator[bytes]:
        if request.query.get("alt") == "sse":
            for event in events:
                yield f"data: {_text(event)}\r\n\r\n".encode()
            return
        # Without alt=sse the API streams one JSON array, element by element.
        opening = "["
        for event in events:
            yield f"{opening}{_text(event)}".encode()
            opening = ",\r\n"
        yield b"]"

    def stream_type(self, request: Request) -> str:
        return "text/event-stream" if request.query.get("alt") == "sse" else "application/json"

    def headers(self, _mint: Mint) -> list[tuple[str, str]]:
        return [("server-timing", "gfet4t7; dur=42"), ("x-gemini-service-tier", "standard")]

    def error(self, failure: Failure, _mint: Mint) -> Json:
        status, message = _STATUS.get(failure.status, _STATUS[500])
        error: dict[str, Any] = {
            "code": failure.status,
            "message": failure.message or message,
            "status": status,
        }
        if failure.retry_after is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{failure.retry_after:g}s"}]
        return {"error": error}

    def error_event(self, failure: Failure, mint: Mint) -> Json:
        return self.error(failure, mint)


def _parts_text(content: Any) -> str:
    return text_of(content.get("parts") if isinstance(content, dict) else content)


def _text(event: Json | str) -> str:
    return event if isinstance(event, str) else encode(event)


def _response_id(mint: Mint) -> str:
    return mint.secret(22)


def _calls(reply: Reply, mint: Mint) -> list[Json]:
    parts: list[Json] = []
    for call in reply.tool_calls:
        function: dict[str, Any] = {"name": call.name, "args": arguments_object(call)}
        if call.id is not None:
            function["id"] = call.id
        part: dict[str, Any] = {"functionCall": function}
        # Of several calls in one turn only the first is signed.
        if not parts and reply.thinking:
            part["thoughtSignature"] = mint.opaque(120)
        parts.append(part)
    return parts


def _chunk(
    request: Request, reply: Reply, response_id: str, parts: list[Json], *, finished: bool
) -> Json:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finished:
        candidate["finishReason"] = _FINISH.get(stop_reason_of(reply), "STOP")
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(request, reply),
        "modelVersion": reply.model or request.model or DEFAULT_MODEL,
        "responseId": response_id,
    }


def _usage(request: Request, reply: Reply) -> Json:
    counts = count(request, reply)
    usage: dict[str, Any] = {
        "promptTokenCount": counts.prompt,
        "candidatesTokenCount": counts.output - counts.reasoning,
        "totalTokenCount": counts.total,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": counts.prompt}],
    }
    if counts.cache_read:
        usage["cachedContentTokenCount"] = counts.cache_read
    if counts.reasoning:
        usage["thoughtsTokenCount"] = counts.reasoning
    return usage
