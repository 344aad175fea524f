"""Change what was answered then: `llm:2.response.text=…`, `tool:1.response={…}`. Pure.

Knows the response shapes of the LLM APIs, whole and streamed: an edited answer goes out on the same
wire as the taped one did.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from playhead.errors import UsageError
from playhead.llm.http.content_encoding import undo
from playhead.recording.calls import Piece, Taped

_SPEC = re.compile(r"([a-z]+):(\d+)\.response(\.text)?=(.*)", re.DOTALL)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """`ordinal` counts the taped calls of that boundary from 1."""

    boundary: str
    ordinal: int
    value: str


def parse_edit(spec: str) -> Edit:
    """UsageError says what is wrong with it."""
    hit = _SPEC.fullmatch(spec)
    if (
        hit is None
        or (hit[3] is not None) != (hit[1] == "llm")
        or hit[1] not in ("llm", "tool", "mcp")
    ):
        raise UsageError(
            f"{spec!r} is no edit: expected llm:N.response.text=TEXT, or tool:N.response=JSON, "
            "where N counts the calls of that boundary."
        )
    return Edit(boundary=hit[1], ordinal=int(hit[2]), value=hit[4])


def edited(taped: Taped, edit: Edit, api: str) -> Taped:
    """The taped answer with another text, or another value."""
    if edit.boundary != "llm":
        value = _json_or_text(edit.value)
        return replace(
            taped, how="returned", value=value, frozen=value, error=None, frozen_error=None
        )
    if taped.head is None or api not in _WHOLE:
        raise UsageError(
            f"The response of llm call {edit.ordinal} ({api or 'no known API'}) cannot be edited."
        )
    headers = {str(name).lower(): str(value) for name, value in taped.head.get("headers") or ()}
    raw = b"".join(piece.data for piece in taped.pieces if piece.stream == "body")
    plain = undo(headers.get("content-encoding"), raw)
    if plain.reason is not None:
        raise UsageError(
            f"The response of llm call {edit.ordinal} cannot be edited: {plain.reason}."
        )
    if "event-stream" in headers.get("content-type", ""):
        body = list(_streamed(plain.body, api, edit.value))
    else:
        body = [_dump(_WHOLE[api](json.loads(plain.body), edit.value))]
    return _with_body(taped, body)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _with_body(taped: Taped, body: list[bytes]) -> Taped:
    """Not encoded any more, and of another length."""
    length = str(sum(map(len, body)))
    headers = [
        [name, length if name.lower() == "content-length" else value]
        for name, value in taped.head.get("headers") or ()
        if name.lower() != "content-encoding"
    ]
    pieces = [piece for piece in taped.pieces if piece.stream != "body"]
    pieces += [Piece(stream="body", data=data, at_ns=0) for data in body]
    facts = {name: item for name, item in taped.facts.items() if name != "sizes"}
    head = {**taped.head, "headers": headers}
    return replace(taped, how="returned", head=head, pieces=pieces, facts=facts, dies=None)


def _first_text(items: list[Any], is_text: Callable[[Json], bool], made: Json) -> list[Any]:
    """`made` in place of the first text among these, and no other text; before all if there was none."""
    texts = [index for index, one in enumerate(items) if isinstance(one, dict) and is_text(one)]
    at = texts[0] if texts else 0
    old = items[at] if texts else {}
    kept = [None if index in texts else one for index, one in enumerate(items)]
    kept.insert(at, {**old, **made})
    return [one for one in kept if one is not None]


def _anthropic(body: Json, text: str) -> Json:
    block = {"type": "text", "text": text}
    content = _first_text(body.get("content") or [], lambda one: one.get("type") == "text", block)
    return {**body, "content": content}


def _chat(body: Json, text: str) -> Json:
    choices = [
        {**one, "message": {**(one.get("message") or {}), "content": text}}
        for one in body.get("choices") or []
    ]
    return {**body, "choices": choices}


def _responses(body: Json, text: str) -> Json:
    output = [_message(one, text) for one in body.get("output") or []]
    return {**body, "output": output}


def _message(item: Json, text: str) -> Json:
    if item.get("type") != "message":
        return item
    part = {"type": "output_text", "text": text}
    content = _first_text(
        item.get("content") or [], lambda one: one.get("type") == "output_text", part
    )
    return {**item, "content": content}


def _gemini(body: Json, text: str) -> Json:
    candidates = []
    for one in body.get("candidates") or []:
        content = one.get("content") or {}
        parts = _first_text(content.get("parts") or [], lambda part: "text" in part, {"text": text})
        candidates.append({**one, "content": {**content, "parts": parts}})
    return {**body, "candidates": candidates}


_WHOLE: dict[str, Callable[[Json, str], Json]] = {
    "anthropic.messages": _anthropic,
    "openai.chat": _chat,
    "openai.responses": _responses,
    "gemini.generate": _gemini,
}


def _streamed(body: bytes, api: str, text: str) -> list[bytes]:
    """The events of a stream: the first that brings text brings all of it, the others are left out."""
    events = [event for event in body.replace(b"\r\n", b"\n").split(b"\n\n") if event.strip()]
    made: list[bytes] = []
    said = False
    for event in events:
        lines = event.split(b"\n")
        data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
        try:
            told = json.loads(data)
        except ValueError:
            made.append(event + b"\n\n")
            continue
        changed = _STREAMED[api](told, text, said=said)
        if changed is None:
            continue
        said = said or changed[1]
        head = [line for line in lines if not line.startswith(b"data:")]
        made.append(b"\n".join([*head, b"data: " + _dump(changed[0])]) + b"\n\n")
    if not said:
        raise UsageError(f"The {api} stream has no text that could be edited: it only calls tools.")
    return made


# An event as it goes out, and whether it brought the text; None: it is left out.
Changed = tuple[Json, bool] | None


class _OfEvent(Protocol):
    def __call__(self, told: Json, text: str, /, *, said: bool) -> Changed: ...


def _anthropic_event(told: Json, text: str, *, said: bool) -> Changed:
    delta = told.get("delta") or {}
    if told.get("type") != "content_block_delta" or delta.get("type") != "text_delta":
        return told, False
    return None if said else ({**told, "delta": {**delta, "text": text}}, True)


def _chat_event(told: Json, text: str, *, said: bool) -> Changed:
    choices = told.get("choices") or []
    delta = (choices[0].get("delta") or {}) if choices else {}
    if not delta.get("content"):
        return told, False
    if said:
        return None
    return {**told, "choices": [{**choices[0], "delta": {**delta, "content": text}}]}, True


def _responses_event(told: Json, text: str, *, said: bool) -> Changed:
    """Deltas first, then the same text whole, three times over."""
    kind = told.get("type")
    if kind == "response.output_text.delta":
        return None if said else ({**told, "delta": text}, True)
    if kind == "response.output_text.done":
        return {**told, "text": text}, False
    if (
        kind == "response.content_part.done"
        and (told.get("part") or {}).get("type") == "output_text"
    ):
        return {**told, "part": {**told["part"], "text": text}}, False
    if kind == "response.output_item.done":
        return {**told, "item": _message(told.get("item") or {}, text)}, False
    if kind == "response.completed":
        return {**told, "response": _responses(told.get("response") or {}, text)}, False
    return told, False


def _gemini_event(told: Json, text: str, *, said: bool) -> Changed:
    candidates = told.get("candidates") or []
    parts = [part for one in candidates for part in (one.get("content") or {}).get("parts") or []]
    if not any("text" in part for part in parts):
        return told, False
    if not said:
        return _gemini(told, text), True
    return (_gemini(told, ""), False) if candidates[0].get("finishReason") else None


_STREAMED: dict[str, _OfEvent] = {
    "anthropic.messages": _anthropic_event,
    "openai.chat": _chat_event,
    "openai.responses": _responses_event,
    "gemini.generate": _gemini_event,
}
