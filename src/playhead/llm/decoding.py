"""Shared functions of the decoders. Knows requests and responses; does not know any API."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import Any

from playhead.llm.http.body_frames import BodyFrames
from playhead.llm.http.jsontext import parse
from playhead.llm.llm_exchange import LlmError, LlmMessage, LlmResponse
from playhead.llm.wire_errors import error_of_text


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
    """The system prompt and the conversation.

    OpenAI carries the prompt as leading messages, Anthropic and Google beside them; here it
    is always beside. System messages further on stay where they are: their place matters.
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
