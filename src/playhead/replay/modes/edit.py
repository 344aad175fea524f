"""Change a taped answer before it is served: `llm:2.response.text=…`, `tool:1.response={…}`. Pure.

An edited answer keeps the form of the taped one, whole or streamed. The providers know the response
bodies of the LLM APIs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from playhead.errors import UsageError
from playhead.llm.http.headers import undo
from playhead.llm.provider import Provider
from playhead.llm.providers import provider_of
from playhead.recording.calls import Piece, Taped

_SPEC = re.compile(r"([a-z]+):(\d+)\.response(\.text)?=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One edit. `ordinal` counts the taped calls of the boundary from 1."""

    boundary: str
    ordinal: int
    value: str


def parse_edit(spec: str) -> Edit:
    """Parse an edit of the command line. Raises UsageError with the expected form."""
    hit = _SPEC.fullmatch(spec)
    if (
        hit is None
        or (hit[3] is not None) != (hit[1] == "llm")
        or hit[1] not in ("llm", "tool", "mcp")
    ):
        raise UsageError(
            f"{spec!r} is not an edit: expected llm:N.response.text=TEXT, or tool:N.response=JSON, "
            "where N counts the calls of that boundary."
        )
    return Edit(boundary=hit[1], ordinal=int(hit[2]), value=hit[4])


def edited(taped: Taped, edit: Edit, api: str) -> Taped:
    """Return the taped answer with another text, or another value."""
    if edit.boundary != "llm":
        value = _json_or_text(edit.value)
        return replace(
            taped, how="returned", value=value, frozen=value, error=None, frozen_error=None
        )
    provider = provider_of(api)
    if taped.head is None or provider is None:
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
        body = _streamed(plain.body, provider, edit.value)
    else:
        changed = provider.replace_text(json.loads(plain.body), edit.value)
        if changed is None:
            raise UsageError(f"Responses of {api} cannot be edited.")
        body = [_dump(changed)]
    return _with_body(taped, body)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _with_body(taped: Taped, body: list[bytes]) -> Taped:
    """Replace the body: the new one is not compressed and has another length."""
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


def _streamed(body: bytes, provider: Provider, text: str) -> list[bytes]:
    """Put the whole text into the first event of a stream that carries text, and drop the other ones."""
    events = [event for event in body.replace(b"\r\n", b"\n").split(b"\n\n") if event.strip()]
    made: list[bytes] = []
    done = False
    for event in events:
        lines = event.split(b"\n")
        data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
        try:
            parsed = json.loads(data)
        except ValueError:
            made.append(event + b"\n\n")
            continue
        changed = provider.replace_event_text(parsed, text, done=done)
        if changed is None:
            continue
        done = done or changed[1]
        head = [line for line in lines if not line.startswith(b"data:")]
        made.append(b"\n".join([*head, b"data: " + _dump(changed[0])]) + b"\n\n")
    if not done:
        raise UsageError(f"The {provider.api} stream has no text to edit: it only calls tools.")
    return made
