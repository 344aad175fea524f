"""Decode the LLM exchanges of a call. Knows `playhead.llm`; does not know prices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from playhead import llm as wire
from playhead.llm import LlmExchange
from playhead.recording.chunks import as_bytes
from playhead.story.shape import Failure, StreamPiece


def exchanges_of(
    api: str, asked: dict[str, Any], head: Any, pieces: Iterable[StreamPiece]
) -> tuple[LlmExchange, ...]:
    """One exchange for a request and its response; as many as there were on a WebSocket."""
    request = asked.get("request")
    request = request if isinstance(request, dict) else {}
    heard = list(pieces)
    if any(piece.stream == "received" for piece in heard):
        return wire.decode_websocket(api, [(one.stream, one.data) for one in heard])
    body = request.get("body")
    sent = (
        as_bytes(body)
        if isinstance(body, dict)
        else b"".join(p.data for p in heard if p.stream == "sent")
    )
    question = wire.decode_request(
        api, sent, url=_text(request.get("url")), headers=_pairs(request.get("headers"))
    )
    if not isinstance(head, dict):
        return (LlmExchange(request=question, response=None),)
    received = b"".join(piece.data for piece in heard if piece.stream == "body")
    status = head.get("status")
    answer = wire.decode_response(
        api, status if isinstance(status, int) else 0, _pairs(head.get("headers")), received
    )
    return (LlmExchange(request=question, response=answer),)


def failure_of_exchange(boundary: str, head: Any, llm: tuple[LlmExchange, ...]) -> Failure | None:
    """Return the failure of a call whose answer arrived and reports an error: a 429, a 500, an error event."""
    for exchange in llm:
        if exchange.response is not None and exchange.response.error is not None:
            error = exchange.response.error
            kind = error.type or "error"
            shown = f"{error.status} {kind}" if error.status and error.status >= 400 else kind
            return Failure(type=shown, message=error.message or "")
    if boundary == "http" and isinstance(head, dict):
        status = head.get("status")
        if isinstance(status, int) and status >= 400:
            return Failure(type=f"HTTP {status}", message=str(head.get("reason") or ""))
    return None


def _pairs(headers: Any) -> dict[str, str]:
    if isinstance(headers, dict):
        return {str(name).lower(): str(value) for name, value in headers.items()}
    if not isinstance(headers, list):
        return {}
    return {
        str(pair[0]).lower(): str(pair[1])
        for pair in headers
        if isinstance(pair, list) and len(pair) == 2
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
