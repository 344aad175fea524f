"""Decode requests and responses of Google's generateContent: documents, server-sent events, growing arrays.

Gemini may stream the arguments of a function call in parts (``partialArgs`` with JSON paths); they are assembled.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from playhead.llm.body_frames import DOCUMENT, BodyFrames, frames_of
from playhead.llm.decoding import broken_answer, error_of, read_request, unread, why_broken
from playhead.llm.jsontext import count, mapping, mappings, prose, string, total
from playhead.llm.llm_exchange import (
    Image,
    LlmError,
    LlmMessage,
    LlmRequest,
    LlmResponse,
    LlmTool,
    Other,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
    text_of,
)

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]")
_VALUES = ("stringValue", "numberValue", "boolValue")


def whole_parts(parts: list[dict[str, Any]], *, ended: bool) -> list[dict[str, Any]]:
    """Return the parts with each streamed call as one part.

    A streamed call begins with its name and ``willContinue``, continues in parts with only ``partialArgs``, and ends
    with a part without ``willContinue``.
    """
    whole: list[dict[str, Any]] = []
    growing: dict[str, Any] | None = None
    for part in parts:
        call = part.get("functionCall")
        if not isinstance(call, dict) or not _is_streamed(call, growing):
            whole.append(part)
            continue
        if growing is None or call.get("name"):
            growing = {**call, "args": dict(mapping(call.get("args")))}
            growing.pop("partialArgs", None)
            whole.append({**part, "functionCall": growing})
        for piece in mappings(call.get("partialArgs")):
            _write(growing["args"], piece)
        growing["willContinue"] = call.get("willContinue") is True
        if not growing["willContinue"]:
            growing = None
    if growing is not None and ended:
        growing["willContinue"] = False
    return whole


def _is_streamed(call: dict[str, Any], growing: dict[str, Any] | None) -> bool:
    if "partialArgs" in call or call.get("willContinue") is True:
        return True
    return growing is not None and not call.get("name")


def _write(args: dict[str, Any], piece: dict[str, Any]) -> None:
    """Put one value at its JSON path; a string that exists there is extended."""
    steps: list[str | int] = [
        int(index) if index else name or quoted
        for name, index, quoted in _STEP.findall(_path(piece))
    ]
    inside: Any = args
    for step, following in pairwise(steps):
        inside = _get(inside, step, [] if isinstance(following, int) else {})
    if steps:
        value = next((piece[kind] for kind in _VALUES if kind in piece), None)
        known = _get(inside, steps[-1], value)
        if isinstance(value, str) and isinstance(known, str) and known is not value:
            inside[steps[-1]] = known + value


def _get(inside: Any, step: str | int, default: Any) -> Any:
    """Return the value at this step, created if necessary; None if the path is invalid."""
    if isinstance(inside, dict) and isinstance(step, str):
        return inside.setdefault(step, default)
    if isinstance(inside, list) and isinstance(step, int) and step <= len(inside):
        # Lists grow one by one: an untrusted index must not create a huge list.
        if step == len(inside):
            inside.append(default)
        return inside[step]
    return None


def _path(piece: dict[str, Any]) -> str:
    return (string(piece.get("jsonPath")) or "").removeprefix("$")


API = "gemini.generate"
TOOL_WORDS = (b"functionCall", b"function_call")

_SHAPED = frozenset(("model", "contents", "systemInstruction", "system_instruction", "tools"))

# Marks a part that may be cut off (JSON cannot hold this key). True: text after a thought; the flag that
# says whether it is a thought, too, comes after the text and is missing.
_CUT = object()


def decode_request(body: bytes) -> LlmRequest:
    document, reason = read_request(body)
    model = string(document.get("model"))
    if isinstance(document.get("request"), dict) and "contents" not in document:
        document = document["request"]  # Code Assist wraps the request proper
    contents = document.get("contents")
    system = text_of(_parts(mapping(_either(document, "systemInstruction", "system_instruction"))))
    return LlmRequest(
        api=API,
        model=(model or string(document.get("model")) or "").removeprefix("models/") or None,
        system=system or None,
        messages=tuple(
            _message(one)
            for one in ([contents] if isinstance(contents, dict) else mappings(contents))
        ),
        tools=tuple(tool for one in mappings(document.get("tools")) for tool in _tools(one)),
        params=unread(document, _SHAPED),
        complete=reason is None,
        reason=reason,
    )


def decode_response(
    status: int, content_type: str, body: bytes, *, only: tuple[bytes, ...] = ()
) -> LlmResponse:
    frames = frames_of(content_type, body, only)
    if frames.kind == DOCUMENT:
        document = frames.frames[0].value
        error = error_of(document, status)
        if error is not None or not isinstance(document, dict):
            return broken_answer(API, status, frames, error)
    head: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    error = None
    for frame in frames.frames:
        chunk = mapping(frame.value)
        error = error_of(chunk, None) or error
        chunk = mapping(chunk.get("response")) or chunk
        _grow(head, candidates, chunk, partial=frame.partial)
    if error is not None:
        reason = why_broken(error, status, frames)
    else:
        reason = _why_cut(frames, head, list(candidates.values()))
    return _response(head, candidates, status=status, error=error, reason=reason)


def _grow(
    head: dict[str, Any],
    candidates: dict[int, dict[str, Any]],
    chunk: dict[str, Any],
    *,
    partial: bool,
) -> None:
    for key in ("responseId", "modelVersion", "promptFeedback"):
        if chunk.get(key):
            head[key] = chunk[key]
    # Counts are cumulative: a later count replaces an earlier one, a missing one changes nothing.
    head.setdefault("usage", {}).update(mapping(chunk.get("usageMetadata")))
    for one in mappings(chunk.get("candidates")):
        candidate = candidates.setdefault(count(one.get("index")) or 0, {"parts": []})
        arrived = mappings(mapping(one.get("content")).get("parts"))
        candidate["parts"] += arrived
        candidate["finish"] = string(one.get("finishReason")) or candidate.get("finish")
        if partial and arrived:
            *before, last = candidate["parts"][-2:]
            doubtful = any(one.get("thought") is True for one in before)
            candidate["parts"][-1] = {**last, _CUT: doubtful}


def _why_cut(
    frames: BodyFrames, head: dict[str, Any], candidates: list[dict[str, Any]]
) -> str | None:
    finished = bool(candidates) and all(one["finish"] for one in candidates)
    blocked = bool(mapping(head.get("promptFeedback")).get("blockReason"))
    if frames.kind == DOCUMENT or finished or blocked:
        return frames.reason
    return frames.reason or "the stream ended before a finishReason"


def _response(
    head: dict[str, Any],
    candidates: dict[int, dict[str, Any]],
    *,
    status: int,
    error: LlmError | None,
    reason: str | None,
) -> LlmResponse:
    places = sorted(candidates)
    answers = [
        _merged(_parts({"parts": whole_parts(candidates[at]["parts"], ended=reason is None)}))
        for at in places
    ]
    feedback = mapping(head.get("promptFeedback"))
    blocked = string(feedback.get("blockReason"))
    parts = answers[0] if answers else ()
    if blocked is not None:
        parts = (*parts, Refusal(text=prose(feedback.get("blockReasonMessage") or blocked)))
    return LlmResponse(
        api=API,
        status=status,
        id=string(head.get("responseId")),
        model=string(head.get("modelVersion")),
        parts=parts,
        stop_reason=(candidates[places[0]]["finish"] if places else None) or blocked,
        usage=_usage(head["usage"]) if head.get("usage") else None,
        error=error,
        complete=reason is None,
        reason=reason,
        alternatives=tuple(answers[1:]),
    )


def _usage(usage: dict[str, Any]) -> Usage:
    read = total(count(usage.get("promptTokenCount")), count(usage.get("toolUsePromptTokenCount")))
    thought = count(usage.get("thoughtsTokenCount"))
    written = total(count(usage.get("candidatesTokenCount")), thought)
    together = count(usage.get("totalTokenCount"))
    if written is None and read is not None and together is not None:
        written = max(together - read, 0)  # a count of zero is left out on the wire
    return Usage(
        input_tokens=read,
        cache_read_tokens=count(usage.get("cachedContentTokenCount")),
        output_tokens=written,
        reasoning_tokens=thought,
    )


def _message(content: dict[str, Any]) -> LlmMessage:
    role = string(content.get("role")) or "user"
    return LlmMessage(role="assistant" if role == "model" else role, parts=_parts(content))


def _merged(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Merge neighbouring texts: a stream splits them at random."""
    merged: list[Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, Text) and isinstance(last, Text):
            merged[-1] = Text(text=last.text + part.text)
        elif isinstance(part, Thinking) and isinstance(last, Thinking):
            signature = part.signature or last.signature
            merged[-1] = Thinking(text=last.text + part.text, signature=signature)
        else:
            merged.append(part)
    return tuple(part for part in merged if part != Text(text=""))


def _parts(content: dict[str, Any]) -> tuple[Part, ...]:
    return tuple(_part(part) for part in mappings(content.get("parts")))


def _part(part: dict[Any, Any]) -> Part:
    if isinstance(part.get("text"), str):
        text = prose(part["text"])
        if part.get("thought") is not True:
            return Other(type="text", data=text) if part.get(_CUT) else Text(text=text)
        return Thinking(
            text=text, signature=string(_either(part, "thoughtSignature", "thought_signature"))
        )
    call = _either(part, "functionCall", "function_call")
    if isinstance(call, dict):
        given = call.get("args", {})
        unfinished = call.get("willContinue") is True or (_CUT in part and "args" not in call)
        return ToolUse(
            id=string(call.get("id")),
            name=string(call.get("name")),
            arguments=given,
            # Complete arguments are an object; text is the part of a call that was cut off.
            complete=isinstance(given, dict) and not unfinished,
        )
    answer = _either(part, "functionResponse", "function_response")
    if isinstance(answer, dict):
        return _result(answer)
    return _media(part)


def _media(part: dict[Any, Any]) -> Part:
    inline = mapping(_either(part, "inlineData", "inline_data"))
    stored = mapping(_either(part, "fileData", "file_data"))
    media = string(_either(inline or stored, "mimeType", "mime_type"))
    if media is not None and media.startswith("image/"):
        url = string(_either(stored, "fileUri", "file_uri"))
        return Image(media_type=media, url=url, data=string(inline.get("data")))
    code = _either(part, "executableCode", "executable_code")
    if isinstance(code, dict):
        return ToolUse(
            id=string(code.get("id")), name="code_execution", arguments=code, by_provider=True
        )
    ran = _either(part, "codeExecutionResult", "code_execution_result")
    if isinstance(ran, dict):
        return ToolResult(
            id=string(ran.get("id")),
            name="code_execution",
            content=(Text(text=prose(ran.get("output"))),),
            is_error=ran.get("outcome") != "OUTCOME_OK",
        )
    own = {key: value for key, value in part.items() if key is not _CUT}
    kind = next((key for key in own if key not in ("thoughtSignature", "thought")), None)
    return Other(type=kind, data=own)


def _result(answer: dict[str, Any]) -> ToolResult:
    given = answer.get("response")
    only = mapping(given)
    # By convention {"output": …} or {"result": …} wraps a plain text, {"error": …} a failure.
    texts = [only[key] for key in ("output", "result", "error") if isinstance(only.get(key), str)]
    part: Part = Text(text=prose(texts[0])) if texts else Other(type="json", data=given)
    return ToolResult(
        id=string(answer.get("id")),
        name=string(answer.get("name")),
        content=(part,),
        is_error="error" in only or None,
    )


def _tools(tool: dict[str, Any]) -> list[LlmTool]:
    declared = mappings(_either(tool, "functionDeclarations", "function_declarations"))
    if declared:
        return [
            LlmTool(
                name=string(one.get("name")),
                description=string(one.get("description")),
                schema=_either(one, "parameters", "parametersJsonSchema"),
                type="function",
            )
            for one in declared
        ]
    return [LlmTool(name=kind, type=kind) for kind in tool]


def _either(document: dict[str, Any], camel: str, snake: str) -> Any:
    """Return a field by its JSON name, or by its protocol-buffer name."""
    value = document.get(camel)
    return value if value is not None else document.get(snake)
