"""Rewrite LLM requests without a change of the agent's code: model, system prompt, history, JSON Patch.

Pure: a body in, a body out. The providers know where an API keeps its system prompt and messages.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from playhead.errors import UsageError
from playhead.llm.provider import Provider
from playhead.llm.providers import provider_or_default


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
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
        provider = provider_or_default(api)
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
