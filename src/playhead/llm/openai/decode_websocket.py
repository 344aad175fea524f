"""Assign the messages of a WebSocket to exchanges of the Responses API: many exchanges share a socket."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from playhead.llm.http.jsontext import parse
from playhead.llm.json_fields import mapping, string
from playhead.llm.llm_exchange import LlmExchange, LlmRequest
from playhead.llm.openai.decode_responses import decode_events, decode_request

SENT = "sent"
RECEIVED = "received"


@dataclass(slots=True)
class _Open:
    request: LlmRequest
    stream_id: str | None
    events: list[Any] = field(default_factory=list)


def decode_websocket(messages: Iterable[tuple[str, bytes | str]]) -> tuple[LlmExchange, ...]:
    """Decode the exchanges on one socket from its messages in order: ("sent" | "received", message).

    A ``response.create`` opens an exchange; a received message belongs to the last exchange with the same
    ``stream_id`` (sockets without multiplexing have none).
    """
    exchanges: list[_Open] = []
    for direction, message in messages:
        data = message.encode("utf-8", "replace") if isinstance(message, str) else bytes(message)
        value = mapping(parse(data.decode("utf-8", "replace")).value)
        stream_id = string(value.get("stream_id"))
        if direction == SENT:
            if value.get("type") in ("response.create", None):
                exchanges.append(_Open(request=decode_request(data), stream_id=stream_id))
            continue
        for exchange in reversed(exchanges):
            if exchange.stream_id == stream_id:
                exchange.events.append(value)
                break
    return tuple(
        LlmExchange(request=one.request, response=decode_events(one.events) if one.events else None)
        for one in exchanges
    )
