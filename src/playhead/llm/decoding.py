"""What the decoders of all protocols do alike. Knows requests and answers, no protocol."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import Any

from playhead.llm.http.body_frames import Frames
from playhead.llm.http.jsontext import parse
from playhead.llm.llm_exchange import LlmError, LlmMessage, LlmResponse
from playhead.llm.wire_errors import error_of_text


def read_request(body: bytes) -> tuple[dict[str, Any], str | None]:
    """The JSON object of a request, and why it is not whole (None when it is)."""
    text = codecs.getincrementaldecoder("utf-8-sig")("replace").decode(body)
    parsed = parse(text)
    if isinstance(parsed.value, dict):
        return parsed.value, parsed.reason
    return {}, parsed.reason or "the body is no JSON object"


def unread(document: dict[str, Any], shaped: frozenset[str]) -> dict[str, Any]:
    """The fields that have no place of their own in a request."""
    return {key: value for key, value in document.items() if key not in shaped}


def broken_answer(api: str, status: int, frames: Frames, error: LlmError | None) -> LlmResponse:
    """An answer that holds no message: an error, or nothing that can be read."""
    reason = frames.reason
    document = frames.frames[0].value
    if error is None and not isinstance(document, dict):
        reason = reason or "the body is no JSON object"
        if status >= 400:
            # A proxy's error page is whole, as far as anybody can tell.
            error = error_of_text(frames.text, status)
            reason = None
    return LlmResponse(api=api, status=status, error=error, complete=reason is None, reason=reason)


def why_broken(error: LlmError, status: int | None, frames: Frames) -> str | None:
    """Why an answer with an error in it is not complete; None when it is."""
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
    """The arguments of a call that were sent as JSON text, and whether they are all there.

    Text that is no JSON is given back as text: a cut stream's, or a model's mistake.
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
