"""Google's generateContent, as served by the Gemini API, Vertex and the Code Assist backend.

The provider itself: recognition, rewriting, error answers. `decode_gemini` reads bodies and streams,
`encode_gemini` writes them for the scripted server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from playhead.host.later import Later
from playhead.llm.gemini import decode_gemini
from playhead.llm.http_headers import Headers
from playhead.llm.llm_exchange import LlmRequest, LlmResponse
from playhead.llm.provider import Json, Provider, has_keys, replace_first_text, text_or_empty

if TYPE_CHECKING:
    from playhead.llm.gemini import encode_gemini
    from playhead.llm.reply_encoder import ReplyEncoder
else:
    encode_gemini = Later("playhead.llm.gemini.encode_gemini")

_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_ERRORS = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    403: ("PERMISSION_DENIED", "The caller does not have permission."),
    404: ("NOT_FOUND", "The requested resource was not found."),
    429: ("RESOURCE_EXHAUSTED", "You exceeded your current quota."),
    500: ("INTERNAL", "An internal error has occurred."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "The deadline expired before the operation could complete."),
}


class GeminiGenerate(Provider):
    """`POST …/models/MODEL:generateContent` and `:streamGenerateContent`."""

    api = decode_gemini.API
    price_id = "google"
    endpoints = {"generateContent": False, "streamGenerateContent": True}  # noqa: RUF012  read only
    tool_words = decode_gemini.TOOL_WORDS
    messages_field = "contents"

    def matches(self, path: str, headers: Headers, body: bytes | None) -> bool:
        return ":" in path[path.rfind("/") + 1 :] and has_keys(body, b'"contents"')

    def decode_request(self, body: bytes) -> LlmRequest:
        return decode_gemini.decode_request(body)

    def decode_response(
        self, status: int, content_type: str, body: bytes, *, only: Iterable[bytes] = ()
    ) -> LlmResponse:
        return decode_gemini.decode_response(status, content_type, body, only=tuple(only))

    def streamed_text(self, event: Json) -> Iterator[tuple[str, bool]]:
        for part in _parts(event.get("candidates"), first_only=True):
            yield text_or_empty(part.get("text")), bool(part.get("thought"))

    def set_system(self, body: Json, text: str) -> None:
        body["systemInstruction"] = {"parts": [{"text": text}]}

    def starts_turn(self, message: Json) -> bool:
        parts = message.get("parts")
        given = parts if isinstance(parts, list) else []
        is_result = any(isinstance(part, dict) and "functionResponse" in part for part in given)
        return message.get("role") == "user" and not is_result

    def replace_text(self, body: Json, text: str) -> Json:
        candidates = []
        for one in body.get("candidates") or []:
            content = one.get("content") or {}
            parts = replace_first_text(
                content.get("parts") or [], lambda part: "text" in part, {"text": text}
            )
            candidates.append({**one, "content": {**content, "parts": parts}})
        return {**body, "candidates": candidates}

    def replace_event_text(self, event: Json, text: str, *, done: bool) -> tuple[Json, bool] | None:
        candidates = event.get("candidates") or []
        if not any("text" in part for part in _parts(candidates)):
            return event, False
        if not done:
            return self.replace_text(event, text), True
        # The last event also has the finish reason and the token counts: it stays, without text.
        return (self.replace_text(event, ""), False) if candidates[0].get("finishReason") else None

    def error_body(
        self,
        status: int,
        message: str | None = None,
        *,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> Json:
        kind, usual = _ERRORS.get(status, _ERRORS[500])
        error: Json = {"code": status, "message": message or usual, "status": kind}
        if retry_after is not None:
            error["details"] = [{"@type": _RETRY_INFO, "retryDelay": f"{retry_after:g}s"}]
        return {"error": error}

    def reply_encoder(self) -> ReplyEncoder:
        return encode_gemini.GeminiEncoder()


def _parts(candidates: Any, *, first_only: bool = False) -> Iterator[Json]:
    found = candidates if isinstance(candidates, list) else []
    for candidate in found[:1] if first_only else found:
        content = candidate.get("content") if isinstance(candidate, dict) else None
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, dict):
                yield part
