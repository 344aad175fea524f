"""Shared functions of the decoders: requests, broken answers, and the error bodies of all providers."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import Any

from playhead.llm.body_frames import BodyFrames
from playhead.llm.jsontext import count, mappings, parse, string
from playhead.llm.llm_exchange import LlmError, LlmMessage, LlmResponse

_SHOWN = 500


def error_of(value: Any, status: int | None) -> LlmError | None:
    """Return the error that a JSON value reports, or None.

    Anthropic ``{"type": "error", "error": {"type", "message"}}``, OpenAI ``{"error": {"message", "type", "code"}}``
    or flat ``{"type": "error", "code", "message"}``, Google ``{"error": {"code", "message", "status", "details"}}``,
    Bedrock ``{"message"}``, and gateways that send ``{"error": "text"}`` or ``{"detail": "text"}``.
    """
    if not isinstance(value, dict):
        return None
    inner = value.get("error")
    if isinstance(inner, str) and inner:
        return LlmError(status=_failing(status), type=None, message=inner)
    if isinstance(inner, dict) and inner:
        return _of_mapping(inner, _failing(status) or count(value.get("status")))
    if value.get("type") == "error" or (status is not None and status >= 400):
        return _of_mapping(value, status)
    return None


def error_of_text(text: str, status: int) -> LlmError:
    """Return the error of a failed answer that is not JSON: a proxy's page, a bare sentence."""
    shown = " ".join(text.split())[:_SHOWN]
    return LlmError(status=status, type=None, message=shown or None)


def _of_mapping(error: dict[str, Any], status: int | None) -> LlmError:
    kind = string(error.get("type"))
    code = error.get("code")
    if kind in (None, "error"):
        kind = string(error.get("status")) or string(code)
    return LlmError(
        # An error inside a stream comes after a 200: only its own code is its status.
        status=_failing(status) or _failing(count(code)),
        type=kind,
        message=string(error.get("message")) or string(error.get("detail")),
        code=str(code) if isinstance(code, (str, int)) else None,
        retry_after=_retry_delay(error),
    )


def _failing(status: int | None) -> int | None:
    return status if status is not None and 400 <= status < 600 else None


def _retry_delay(error: dict[str, Any]) -> float | None:
    """Google's RetryInfo: ``{"@type": "….RetryInfo", "retryDelay": "17.5s"}``."""
    for detail in mappings(error.get("details")):
        delay = string(detail.get("retryDelay"))
        if delay is not None and delay.endswith("s"):
            try:
                return max(0.0, float(delay[:-1]))
            except ValueError:
                return None
    return None


def read_request(body: bytes) -> tuple[dict[str, Any], str | None]:
    """Return the JSON object of a request, and why it is incomplete (None when it is complete)."""
    text = codecs.getincrementaldecoder("utf-8-sig")("replace").decode(body)
    parsed = parse(text)
    if isinstance(parsed.value, dict):
        return parsed.value, parsed.reason
    return {}, parsed.reason or "the body is not a JSON object"


def unread(document: dict[str, Any], shaped: frozenset[str]) -> dict[str, Any]:
    """Return the fields that have no place of their own in LlmRequest."""
    return {key: value for key, value in document.items() if key not in shaped}


def broken_answer(api: str, status: int, frames: BodyFrames, error: LlmError | None) -> LlmResponse:
    """Build a response without a message: an error, or bytes that cannot be decoded."""
    reason = frames.reason
    document = frames.frames[0].value
    if error is None and not isinstance(document, dict):
        reason = reason or "the body is not a JSON object"
        if status >= 400:
            # Assume that a proxy's error page is complete.
            error = error_of_text(frames.text, status)
            reason = None
    return LlmResponse(api=api, status=status, error=error, complete=reason is None, reason=reason)


def why_broken(error: LlmError, status: int | None, frames: BodyFrames) -> str | None:
    """Return why a response with an error in it is incomplete; None when it is complete."""
    if status is not None and status >= 400:
        return frames.reason  # the error is the whole answer: nothing was broken off
    return f"the server broke it off: {error.type or error.code or error.message or 'error'}"


def split_system(
    messages: Iterable[LlmMessage], instructions: str = ""
) -> tuple[str | None, tuple[LlmMessage, ...]]:
    """Return the system prompt and the conversation.

    OpenAI carries the prompt as leading messages, Anthropic and Google beside them; here it is always beside. System
    messages further on stay where they are, because their place matters.
    """
    texts = [instructions] if instructions else []
    conversation = tuple(messages)
    leading = 0
    while leading < len(conversation) and conversation[leading].role in ("system", "developer"):
        texts.append(conversation[leading].text)
        leading += 1
    return "\n\n".join(texts) or None, conversation[leading:]


def arguments_of(written: Any, *, ended: bool) -> tuple[Any, bool]:
    """Return the arguments of a call from their JSON text, and whether they are complete.

    Text that is not valid JSON (a cut stream, a mistake of the model) is returned as text.
    """
    if not isinstance(written, str):
        return written, ended
    if not written.strip():
        return ({}, True) if ended else ("", False)
    parsed = parse(written)
    # An object shows its own end; 12 may be the beginning of 1234.
    if parsed.whole and (ended or isinstance(parsed.value, (dict, list))):
        return parsed.value, True
    return written, ended
