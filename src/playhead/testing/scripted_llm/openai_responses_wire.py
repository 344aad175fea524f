"""OpenAI Responses: read requests, say replies, over HTTP and as WebSocket messages.

Remembers what was said under each response id, for requests that only send what is new.
Knows no socket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from playhead.testing.scripted_llm.llm_script import Failure, Reply, stop_reason_of
from playhead.testing.scripted_llm.mint import Mint
from playhead.testing.scripted_llm.openai_errors import DEFAULT_MODEL, answer_headers, error_object
from playhead.testing.scripted_llm.openai_output_items import item_events, items_of
from playhead.testing.scripted_llm.received import Message, Request, Role, joined
from playhead.testing.scripted_llm.tokens import count
from playhead.testing.scripted_llm.wire import ROLES, Json, retry_headers, sse, text_of

# A long run would otherwise keep every prompt that it ever sent.
_REMEMBERED = 256
_INCOMPLETE = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}


class OpenAIResponsesWire:
    """`POST …/responses` and the WebSocket at the same path."""

    name = "openai-responses"

    def __init__(self) -> None:
        self._said: dict[str, tuple[Message, ...]] = {}

    def read(self, request: Request) -> Request:
        body = request.json
        # An id of another server, or of long ago, only means that its history is unknown.
        earlier = self._said.get(body.get("previous_response_id") or "", ())
        spoken: list[tuple[Role, str]] = [(said.role, said.text) for said in earlier]
        if not earlier and body.get("instructions"):
            spoken.append(("system", text_of(body["instructions"])))
        given = body.get("input") or []
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        spoken += [(_role(item), text_of(item)) for item in items]
        return replace(
            request,
            wire=self.name,
            model=body.get("model"),
            stream=request.method == "WS" or bool(body.get("stream")),
            messages=joined(spoken),
        )

    def whole(self, request: Request, reply: Reply, mint: Mint) -> Json:
        begun = _response(request, reply, mint)
        done = _finished(begun, request, reply, items_of(request, reply, mint))
        self._remember(done["id"], request, reply)
        return done

    def events(self, request: Request, reply: Reply, mint: Mint) -> Iterator[Json]:
        begun = _response(request, reply, mint)
        items = items_of(request, reply, mint)
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

    def warm_up(self, request: Request, mint: Mint) -> Iterator[Json]:
        """The answer to `generate: false`: a response without output that can be continued."""
        begun = _response(request, Reply(), mint)
        done = _finished(begun, request, Reply(), [])
        usage = {**done["usage"], "output_tokens": 0, "total_tokens": done["usage"]["input_tokens"]}
        self._remember(done["id"], request, Reply())
        events: list[Json] = [
            {"type": "response.created", "response": begun},
            {"type": "response.completed", "response": {**done, "usage": usage}},
        ]
        return _numbered(request, events)

    def frames(self, _request: Request, events: Iterable[Json | str]) -> Iterator[bytes]:
        for event in events:
            yield sse(event, None if isinstance(event, str) else event["type"])

    def stream_type(self, _request: Request) -> str:
        return "text/event-stream; charset=utf-8"

    def headers(self, mint: Mint) -> list[tuple[str, str]]:
        return answer_headers(mint)

    def error(self, failure: Failure, _mint: Mint) -> Json:
        return {"error": error_object(failure)}

    def error_event(self, failure: Failure, _mint: Mint) -> Json:
        told = error_object(failure)
        flat = {key: told[key] for key in ("code", "message", "param")}
        return {"type": "error", "sequence_number": failure.after or 0, **flat}

    def message_error(self, request: Request, failure: Failure) -> Json:
        """An error as a WebSocket message: what HTTP says with status and headers is inside."""
        told: dict[str, Any] = {**error_object(failure), "headers": dict(retry_headers(failure))}
        event = {"type": "error", "status": failure.status, "error": told}
        return {**event, **_stream_id(request)}

    def _remember(self, response_id: str, request: Request, reply: Reply) -> None:
        answered = [(said.role, said.text) for said in request.messages]
        if reply.text or reply.tool_calls:
            called = " ".join(call.name for call in reply.tool_calls)
            answered.append(("assistant", reply.text or called))
        self._said[response_id] = joined(answered)
        if len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]


def _role(item: Any) -> Role:
    if not isinstance(item, Mapping):
        return "user"
    if "role" in item:
        return ROLES.get(item["role"], "user")
    return "user" if str(item.get("type", "")).endswith("_output") else "assistant"


def _stream_id(request: Request) -> Json:
    asked = request.json
    if request.method != "WS" or not isinstance(asked, Mapping) or "stream_id" not in asked:
        return {}
    return {"stream_id": asked["stream_id"]}


def _numbered(request: Request, events: Iterable[Json]) -> Iterator[Json]:
    for number, event in enumerate(events):
        kind, *rest = event.items()
        yield dict([kind, ("sequence_number", number), *rest, *_stream_id(request).items()])


def _response(request: Request, reply: Reply, mint: Mint) -> dict[str, Any]:
    asked = request.json
    return {
        "id": f"resp_{mint.hex(50)}",
        "object": "response",
        "created_at": mint.now,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": asked.get("instructions"),
        "max_output_tokens": asked.get("max_output_tokens"),
        "model": reply.model or request.model or DEFAULT_MODEL,
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


def _finished(begun: Json, request: Request, reply: Reply, items: list[Json]) -> dict[str, Any]:
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
