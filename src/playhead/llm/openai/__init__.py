"""OpenAI's two APIs, Chat Completions and Responses, as served by OpenAI, Azure and compatible servers.

The providers themselves: recognition, rewriting, error answers. The `decode_` modules read bodies, streams
and sockets; the `encode_` modules write them for the scripted server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from playhead.host.later import Later
from playhead.llm.http_headers import Headers
from playhead.llm.llm_exchange import LlmExchange, LlmRequest, LlmResponse
from playhead.llm.openai import decode_chat, decode_responses
from playhead.llm.provider import Json, Provider, has_keys, replace_first_text, text_or_empty

if TYPE_CHECKING:
    from playhead.llm.openai import encode_chat, encode_responses
    from playhead.llm.reply_encoder import ReplyEncoder
else:
    encode_chat = Later("playhead.llm.openai.encode_chat")
    encode_responses = Later("playhead.llm.openai.encode_responses")

_THINKING_EVENTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
# A request to the Responses API has one of these; compatible servers use the path for other things.
_RESPONSES_INPUTS = (b'"input"', b'"previous_response_id"', b'"prompt"', b'"conversation"')


class OpenAiChat(Provider):
    """`POST …/chat/completions`."""

    api = decode_chat.API
    price_id = "openai"
    endpoints = {"completions": None}  # noqa: RUF012  read only
    tool_words = decode_chat.TOOL_WORDS

    def matches(self, path: str, headers: Headers, body: bytes | None) -> bool:
        return path.endswith("/chat/completions") and has_keys(body, b'"messages"')

    def decode_request(self, body: bytes) -> LlmRequest:
        return decode_chat.decode_request(body)

    def decode_response(
        self, status: int, content_type: str, body: bytes, *, only: Iterable[bytes] = ()
    ) -> LlmResponse:
        return decode_chat.decode_response(status, content_type, body, only=tuple(only))

    def streamed_text(self, event: Json) -> Iterator[tuple[str, bool]]:
        choices = event.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        delta = first.get("delta") if isinstance(first, dict) else None
        if isinstance(delta, dict):
            yield text_or_empty(delta.get("reasoning_content") or delta.get("reasoning")), True
            yield text_or_empty(delta.get("content")), False

    def set_system(self, body: Json, text: str) -> None:
        rest = [
            one
            for one in body.get("messages", [])
            if one.get("role") not in ("system", "developer")
        ]
        body["messages"] = [{"role": "system", "content": text}, *rest]

    def replace_text(self, body: Json, text: str) -> Json:
        choices = [
            {**one, "message": {**(one.get("message") or {}), "content": text}}
            for one in body.get("choices") or []
        ]
        return {**body, "choices": choices}

    def replace_event_text(self, event: Json, text: str, *, done: bool) -> tuple[Json, bool] | None:
        choices = event.get("choices") or []
        delta = (choices[0].get("delta") or {}) if choices else {}
        if not delta.get("content"):
            return event, False
        if done:
            return None
        return {**event, "choices": [{**choices[0], "delta": {**delta, "content": text}}]}, True

    def reply_encoder(self) -> ReplyEncoder:
        return encode_chat.OpenAiChatEncoder()


class OpenAiResponses(Provider):
    """`POST …/responses`, the WebSocket at the same path, and the Realtime API's socket."""

    api = decode_responses.API
    price_id = "openai"
    # Realtime is a socket that uses the events of the Responses API.
    endpoints = {"responses": None, "realtime": None}  # noqa: RUF012  read only
    tool_words = decode_responses.TOOL_WORDS
    messages_field = "input"

    def matches(self, path: str, headers: Headers, body: bytes | None) -> bool:
        if path.endswith("/realtime"):
            return False
        if body is None:
            return path.endswith("/v1/responses")
        return has_keys(body, b'"model"') and any(word in body for word in _RESPONSES_INPUTS)

    def matches_websocket(self, path: str) -> bool:
        return path.endswith(("responses", "/realtime"))

    def decode_request(self, body: bytes) -> LlmRequest:
        return decode_responses.decode_request(body)

    def decode_response(
        self, status: int, content_type: str, body: bytes, *, only: Iterable[bytes] = ()
    ) -> LlmResponse:
        return decode_responses.decode_response(status, content_type, body, only=tuple(only))

    def decode_websocket(
        self, messages: Iterable[tuple[str, bytes | str]]
    ) -> tuple[LlmExchange, ...]:
        return decode_responses.decode_websocket(messages)

    def streamed_text(self, event: Json) -> Iterator[tuple[str, bool]]:
        kind = event.get("type")
        if kind == "response.output_text.delta":
            yield text_or_empty(event.get("delta")), False
        elif kind in _THINKING_EVENTS:
            yield text_or_empty(event.get("delta")), True

    def set_system(self, body: Json, text: str) -> None:
        body["instructions"] = text

    def replace_text(self, body: Json, text: str) -> Json:
        return {**body, "output": [_item_with_text(one, text) for one in body.get("output") or []]}

    def replace_event_text(self, event: Json, text: str, *, done: bool) -> tuple[Json, bool] | None:
        # The API sends a text as deltas, and then whole three times: as text, as part, as item.
        kind = event.get("type")
        if kind == "response.output_text.delta":
            return None if done else ({**event, "delta": text}, True)
        if kind == "response.output_text.done":
            return {**event, "text": text}, False
        if kind == "response.content_part.done" and _is_text(event.get("part")):
            return {**event, "part": {**event["part"], "text": text}}, False
        if kind == "response.output_item.done":
            return {**event, "item": _item_with_text(event.get("item") or {}, text)}, False
        if kind == "response.completed":
            return {
                **event,
                "response": self.replace_text(event.get("response") or {}, text),
            }, False
        return event, False

    def reply_encoder(self) -> ReplyEncoder:
        return encode_responses.OpenAiResponsesEncoder()


def _item_with_text(item: Json, text: str) -> Json:
    if item.get("type") != "message":
        return item
    part = {"type": "output_text", "text": text}
    return {**item, "content": replace_first_text(item.get("content") or [], _is_text, part)}


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "output_text"
