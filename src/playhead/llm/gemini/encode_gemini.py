"""Read requests to Gemini's generateContent and write scripted replies, whole and streamed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from playhead.llm.gemini import GeminiGenerate
from playhead.llm.llm_script import (
    ReceivedRequest,
    Reply,
    Role,
    ScriptedFailure,
    joined,
    pieces,
    stop_reason_of,
)
from playhead.llm.reply_encoder import (
    ROLES,
    Endpoint,
    IdSource,
    Json,
    ReplyEncoder,
    arguments_object,
    count,
    encode,
    text_of,
)

_PATH = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>\w+)$")
_VERBS: dict[str, Endpoint] = {
    "generateContent": "generate",
    "streamGenerateContent": "generate",
    "countTokens": "count",
}
_FINISH = {"max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}


class GeminiEncoder(ReplyEncoder):
    """`POST …/models/MODEL:generateContent` and `:streamGenerateContent`."""

    name = "gemini"
    default_model = "gemini-3.8-flash"
    serves = ("POST …/models/MODEL:generateContent", ":streamGenerateContent", ":countTokens")
    key_variable = "GEMINI_API_KEY"

    def endpoint(self, path: str) -> Endpoint | None:
        found = _PATH.search(path)
        return None if found is None else _VERBS.get(found["verb"])

    def environ(self, url: str) -> dict[str, str]:
        return {"GOOGLE_GEMINI_BASE_URL": url}

    def fake_key(self, ids: IdSource) -> str:
        return f"AIzaSy{ids.secret(33)}"

    def token_count(self, total: int) -> Json:
        return {"totalTokens": total}

    def lists_models(self, request: ReceivedRequest) -> bool:
        return "x-goog-api-key" in request.headers or "/v1beta" in request.path

    def model_entry(self, name: str) -> dict[str, Any]:
        methods = ["generateContent", "countTokens"]
        entry = {"name": f"models/{name}", "displayName": name}
        return {**entry, "supportedGenerationMethods": methods}

    def model_list(self, entries: list[Json]) -> Json:
        return {"models": entries}

    def read(self, request: ReceivedRequest) -> ReceivedRequest:
        found = _PATH.search(request.path)
        body = request.json
        # countTokens may wrap the whole request that it asks about.
        body = body.get("generateContentRequest") or body
        instruction = body.get("systemInstruction") or body.get("system_instruction")
        texts: list[tuple[Role, str]] = []
        if instruction:
            texts.append(("system", _parts_text(instruction)))
        for content in body.get("contents") or []:
            role = ROLES.get(content.get("role", "user"), "user")
            texts.append((role, _parts_text(content)))
        return replace(
            request,
            wire=self.name,
            model=found["model"] if found else None,
            stream=bool(found and found["verb"].startswith("stream")),
            messages=joined(texts),
        )

    def whole(self, request: ReceivedRequest, reply: Reply, ids: IdSource) -> Json:
        parts: list[Json] = []
        if reply.thinking:
            parts.append({"text": reply.thinking, "thought": True})
        if reply.text:
            parts.append({"text": reply.text})
        parts += _calls(reply, ids)
        return _chunk(request, reply, _response_id(ids), parts, finished=True)

    def events(self, request: ReceivedRequest, reply: Reply, ids: IdSource) -> Iterator[Json]:
        parts: list[Json] = [
            {"text": part, "thought": True} for part in pieces(reply.thinking, reply.chunks)
        ]
        parts += [{"text": part} for part in pieces(reply.text, reply.chunks)]
        parts += _calls(reply, ids)
        response_id = _response_id(ids)
        last = max(0, len(parts) - 1)
        return (
            _chunk(request, reply, response_id, parts[at : at + 1], finished=at == last)
            for at in range(last + 1)
        )

    def frames(self, request: ReceivedRequest, events: Iterable[Json | str]) -> Iterator[bytes]:
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

    def stream_type(self, request: ReceivedRequest) -> str:
        return "text/event-stream" if request.query.get("alt") == "sse" else "application/json"

    def headers(self, _mint: IdSource) -> list[tuple[str, str]]:
        return [("server-timing", "gfet4t7; dur=42"), ("x-gemini-service-tier", "standard")]

    def error(self, failure: ScriptedFailure, _ids: IdSource) -> Json:
        wait = failure.retry_after
        return _PROVIDER.error_body(failure.status, failure.message, retry_after=wait)


_PROVIDER = GeminiGenerate()


def _parts_text(content: Any) -> str:
    return text_of(content.get("parts") if isinstance(content, dict) else content)


def _text(event: Json | str) -> str:
    return event if isinstance(event, str) else encode(event)


def _response_id(ids: IdSource) -> str:
    return ids.secret(22)


def _calls(reply: Reply, ids: IdSource) -> list[Json]:
    parts: list[Json] = []
    for call in reply.tool_calls:
        function: dict[str, Any] = {"name": call.name, "args": arguments_object(call)}
        if call.id is not None:
            function["id"] = call.id
        part: dict[str, Any] = {"functionCall": function}
        # Of several calls in one turn only the first is signed.
        if not parts and reply.thinking:
            part["thoughtSignature"] = ids.opaque(120)
        parts.append(part)
    return parts


def _chunk(
    request: ReceivedRequest, reply: Reply, response_id: str, parts: list[Json], *, finished: bool
) -> Json:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finished:
        candidate["finishReason"] = _FINISH.get(stop_reason_of(reply), "STOP")
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(request, reply),
        "modelVersion": reply.model or request.model or GeminiEncoder.default_model,
        "responseId": response_id,
    }


def _usage(request: ReceivedRequest, reply: Reply) -> Json:
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
