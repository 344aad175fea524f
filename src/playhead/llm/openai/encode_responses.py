"""Read requests to OpenAI's Responses API and write scripted replies, for HTTP and for WebSocket messages.

Remembers the conversation under each response id, for requests that only send what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from playhead.llm.llm_script import (
    ReceivedMessage,
    ReceivedRequest,
    Reply,
    Role,
    ScriptedFailure,
    joined,
    stop_reason_of,
)
from playhead.llm.openai.encode_items import OPENAI_ERRORS, OpenAiEncoder, item_events, items_of
from playhead.llm.reply_encoder import (
    ROLES,
    Endpoint,
    IdSource,
    Json,
    count,
    retry_headers,
    sse,
    text_of,
)

# A long run would otherwise keep every prompt that it ever sent.
_REMEMBERED = 256
_INCOMPLETE = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}


class OpenAiResponsesEncoder(OpenAiEncoder):
    """`POST …/responses` and the WebSocket at the same path."""

    name = "openai-responses"
    serves = ("POST …/responses (also as a WebSocket)",)

    def __init__(self) -> None:
        self._conversations: dict[str, tuple[ReceivedMessage, ...]] = {}

    def endpoint(self, path: str) -> Endpoint | None:
        return "generate" if path.endswith("/responses") else None

    def read(self, request: ReceivedRequest) -> ReceivedRequest:
        body = request.json
        # An id of another server, or of long ago, only means that its history is unknown.
        earlier = self._conversations.get(body.get("previous_response_id") or "", ())
        texts_by_role: list[tuple[Role, str]] = [(one.role, one.text) for one in earlier]
        if not earlier and body.get("instructions"):
            texts_by_role.append(("system", text_of(body["instructions"])))
        given = body.get("input") or []
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        texts_by_role += [(_role(item), text_of(item)) for item in items]
        return replace(
            request,
            wire=self.name,
            model=body.get("model"),
            stream=request.method == "WS" or bool(body.get("stream")),
            messages=joined(texts_by_role),
        )

    def whole(self, request: ReceivedRequest, reply: Reply, ids: IdSource) -> Json:
        begun = _response(request, reply, ids)
        done = _finished(begun, request, reply, items_of(request, reply, ids))
        self._remember(done["id"], request, reply)
        return done

    def events(self, request: ReceivedRequest, reply: Reply, ids: IdSource) -> Iterator[Json]:
        begun = _response(request, reply, ids)
        items = items_of(request, reply, ids)
        done = _finished(begun, request, reply, items)

        def unnumbered() -> Iterator[Json]:
            yield {"type": "response.created", "response": begun}
            yield {"type": "response.in_progress", "response": begun}
            for index, item in enumerate(items):
                yield from item_events(item, index, reply.chunks)
            # Only now: an answer that was cut off cannot be referred to later.
            self._remember(done["id"], request, reply)
            yield {"type": f"response.{done['status']}", "response": done}

        return _numbered(request, unnumbered())

    def warm_up(self, request: ReceivedRequest, ids: IdSource) -> Iterator[Json]:
        """Return the answer to `generate: false`: a response without output that can be continued."""
        begun = _response(request, Reply(), ids)
        done = _finished(begun, request, Reply(), [])
        usage = {**done["usage"], "output_tokens": 0, "total_tokens": done["usage"]["input_tokens"]}
        self._remember(done["id"], request, Reply())
        events: list[Json] = [
            {"type": "response.created", "response": begun},
            {"type": "response.completed", "response": {**done, "usage": usage}},
        ]
        return _numbered(request, events)

    def frames(self, _request: ReceivedRequest, events: Iterable[Json | str]) -> Iterator[bytes]:
        for event in events:
            yield sse(event, None if isinstance(event, str) else event["type"])

    def error_event(self, failure: ScriptedFailure, ids: IdSource) -> Json:
        error = self.error(failure, ids)["error"]
        flat = {key: error[key] for key in ("code", "message", "param")}
        return {"type": "error", "sequence_number": failure.after or 0, **flat}

    def message_error(self, request: ReceivedRequest, failure: ScriptedFailure) -> Json:
        """Return an error as a WebSocket message, with the status and headers of HTTP inside."""
        body = OPENAI_ERRORS.error_body(failure.status, failure.message)
        error: dict[str, Any] = {**body["error"], "headers": dict(retry_headers(failure))}
        event = {"type": "error", "status": failure.status, "error": error}
        return {**event, **_stream_id(request)}

    def _remember(self, response_id: str, request: ReceivedRequest, reply: Reply) -> None:
        answered = [(one.role, one.text) for one in request.messages]
        if reply.text or reply.tool_calls:
            called = " ".join(call.name for call in reply.tool_calls)
            answered.append(("assistant", reply.text or called))
        self._conversations[response_id] = joined(answered)
        if len(self._conversations) > _REMEMBERED:
            del self._conversations[next(iter(self._conversations))]


def _role(item: Any) -> Role:
    if not isinstance(item, Mapping):
        return "user"
    if "role" in item:
        return ROLES.get(item["role"], "user")
    return "user" if str(item.get("type", "")).endswith("_output") else "assistant"


def _stream_id(request: ReceivedRequest) -> Json:
    asked = request.json
    if request.method != "WS" or not isinstance(asked, Mapping) or "stream_id" not in asked:
        return {}
    return {"stream_id": asked["stream_id"]}


def _numbered(request: ReceivedRequest, events: Iterable[Json]) -> Iterator[Json]:
    for number, event in enumerate(events):
        kind, *rest = event.items()
        yield dict([kind, ("sequence_number", number), *rest, *_stream_id(request).items()])


def _response(request: ReceivedRequest, reply: Reply, ids: IdSource) -> dict[str, Any]:
    asked = request.json
    return {
        "id": f"resp_{ids.hex(50)}",
        "object": "response",
        "created_at": ids.now,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": asked.get("instructions"),
        "max_output_tokens": asked.get("max_output_tokens"),
        "model": reply.model or request.model or OpenAiEncoder.default_model,
        "output": [],
        "parallel_tool_calls": asked.get("parallel_tool_calls", True),
        "previous_response_id": asked.get("previous_response_id"),
        "reasoning": asked.get("reasoning") or {"effort": None, "summary": None},
        "service_tier": "default",
        "store": asked.get("store", True),
        "temperature": asked.get("temperature", 1.0),
        "text": asked.get("text") or {"format": {"type": "text"}},
        "tool_choice": asked.get("tool_choice", "auto"),
        "tools": asked.get("tools") or [],
        "top_p": asked.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": None,
        "metadata": asked.get("metadata") or {},
    }


def _finished(
    begun: Json, request: ReceivedRequest, reply: Reply, items: list[Json]
) -> dict[str, Any]:
    counts = count(request, reply)
    reason = _INCOMPLETE.get(stop_reason_of(reply))
    return {
        **begun,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": items,
        "usage": {
            "input_tokens": counts.prompt,
            "input_tokens_details": {
                "cached_tokens": counts.cache_read,
                "cache_write_tokens": counts.cache_write,
            },
            "output_tokens": counts.output,
            "output_tokens_details": {"reasoning_tokens": counts.reasoning},
            "total_tokens": counts.total,
        },
    }
