"""Change taped answers (`llm:2.response.text=…`, `tool:1.response={…}`) and rewrite LLM requests (model, system
prompt, history, JSON Patch) without a change of the agent's code. Pure.

An edited answer keeps the form of the taped one, whole or streamed. The providers know the bodies of their APIs.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import UsageError
from playhead.host.later import Later
from playhead.recording.calls import Piece, Taped

if TYPE_CHECKING:
    from playhead.llm import http_headers, providers
    from playhead.llm.provider import Provider
else:
    # Every replay has a `Rewrite`; few change a request or a response.
    providers = Later("playhead.llm.providers")
    http_headers = Later("playhead.llm.http_headers")

_SPEC = re.compile(r"([a-z]+):(\d+)\.response(\.text)?=(.*)", re.DOTALL)


class Edit(NamedTuple):
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
    provider = providers.provider_of(api)
    if taped.head is None or provider is None:
        raise UsageError(
            f"The response of llm call {edit.ordinal} ({api or 'no known API'}) cannot be edited."
        )
    headers = {str(name).lower(): str(value) for name, value in taped.head.get("headers") or ()}
    raw = b"".join(piece.data for piece in taped.pieces if piece.stream == "body")
    plain = http_headers.undo(headers.get("content-encoding"), raw)
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


class Rewrite(NamedTuple):
    """The changes to make to each request. An empty one changes nothing."""

    model: str | None = None
    system: str | None = None
    max_context_messages: int | None = None
    # JSON Patch (RFC 6902): add, remove, replace, test.
    patch: tuple[Mapping[str, Any], ...] = ()

    @property
    def empty(self) -> bool:
        return self == Rewrite()

    def apply(self, api: str, body: bytes) -> bytes:
        """Return the body to send. A body that is not a JSON object is returned unchanged."""
        try:
            request = json.loads(body)
        except ValueError:
            return body
        if not isinstance(request, dict):
            return body
        provider = providers.provider_or_default(api)
        if self.model is not None and "model" in request:
            request["model"] = self.model
        if self.system is not None:
            provider.set_system(request, self.system)
        if self.max_context_messages is not None:
            _shorten(provider, request, self.max_context_messages)
        for step in self.patch:
            request = _patched(request, step)
        return json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()


def _shorten(provider: Provider, body: dict[str, Any], most: int) -> None:
    """Keep the last `most` messages and the system messages.

    The history then begins with a message of the user: APIs refuse one that begins with an answer, or with
    the result of a tool call that was cut off.
    """
    messages = body.get(provider.messages_field)
    if not isinstance(messages, list):
        return
    kept = [
        one
        for one in messages
        if isinstance(one, dict) and one.get("role") in ("system", "developer")
    ]
    rest = [one for one in messages if one not in kept]
    if len(rest) <= most:
        return
    start = len(rest) - most
    while start > 0 and not (isinstance(rest[start], dict) and provider.starts_turn(rest[start])):
        start -= 1
    body[provider.messages_field] = kept + rest[start:]


def parse_patch(text: str, source: str) -> tuple[Mapping[str, Any], ...]:
    """Parse the text of a JSON Patch file. Raises UsageError with the reason."""
    try:
        steps = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{source} is not valid JSON: {error}.") from None
    if not isinstance(steps, list) or not all(
        isinstance(one, dict) and "op" in one and "path" in one for one in steps
    ):
        raise UsageError(
            f'{source} is not a JSON Patch: expected [{{"op": "replace", "path": "/model", "value": …}}].'
        )
    for step in steps:
        if step["op"] not in ("add", "remove", "replace", "test"):
            raise UsageError(
                f"{source}: unknown op {step['op']!r}; expected add, remove, replace or test."
            )
    return tuple(steps)


def _patched(document: Any, step: Mapping[str, Any]) -> Any:
    """Apply one step. A path that does not exist changes nothing: not every call has every field."""
    words = [
        word.replace("~1", "/").replace("~0", "~") for word in str(step["path"]).split("/")[1:]
    ]
    if not words:
        return copy.deepcopy(step.get("value")) if step["op"] in ("add", "replace") else document
    made = copy.deepcopy(document)
    place = _walk(made, words[:-1])
    last = words[-1]
    if isinstance(place, list):
        _in_list(place, last, step)
    elif isinstance(place, dict):
        if step["op"] == "remove":
            place.pop(last, None)
        elif step["op"] == "add" or (step["op"] == "replace" and last in place):
            place[last] = step.get("value")
    return made


def _walk(document: Any, words: Sequence[str]) -> Any:
    for word in words:
        if (
            isinstance(document, list)
            and word.lstrip("-").isdigit()
            and -len(document) <= int(word) < len(document)
        ):
            document = document[int(word)]
        elif isinstance(document, dict) and word in document:
            document = document[word]
        else:
            return None
    return document


def _in_list(place: list[Any], last: str, step: Mapping[str, Any]) -> None:
    at = len(place) if last == "-" else int(last) if last.lstrip("-").isdigit() else None
    if at is None:
        return
    if step["op"] == "add" and 0 <= at <= len(place):
        place.insert(at, step.get("value"))
    elif step["op"] == "remove" and -len(place) <= at < len(place):
        del place[at]
    elif step["op"] == "replace" and -len(place) <= at < len(place):
        place[at] = step.get("value")
