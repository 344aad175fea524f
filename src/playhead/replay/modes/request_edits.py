"""Change what an LLM is asked without touching the agent's code. Pure: a body in, a body out.

Knows where each API keeps its model, system prompt and messages; not how a body is sent.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from playhead.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """What to change; nothing is changed by an empty one."""

    model: str | None = None
    system: str | None = None
    max_context_messages: int | None = None
    # JSON Patch (RFC 6902): add, remove, replace, test.
    patch: tuple[Mapping[str, Any], ...] = ()

    @property
    def empty(self) -> bool:
        return self == Rewrite()

    def apply(self, api: str, body: bytes) -> bytes:
        """The body as it is to be sent; a body that is no JSON object is left alone."""
        try:
            asked = json.loads(body)
        except ValueError:
            return body
        if not isinstance(asked, dict):
            return body
        if self.model is not None and "model" in asked:
            asked["model"] = self.model
        if self.system is not None:
            _set_system(api, asked, self.system)
        if self.max_context_messages is not None:
            _shorten(api, asked, self.max_context_messages)
        for step in self.patch:
            asked = _patched(asked, step)
        return json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode()


def _set_system(api: str, asked: dict[str, Any], text: str) -> None:
    if api == "anthropic.messages":
        asked["system"] = text
    elif api == "openai.responses":
        asked["instructions"] = text
    elif api == "gemini.generate":
        asked["systemInstruction"] = {"parts": [{"text": text}]}
    else:
        messages = [
            m for m in asked.get("messages", []) if m.get("role") not in ("system", "developer")
        ]
        asked["messages"] = [{"role": "system", "content": text}, *messages]


def _shorten(api: str, asked: dict[str, Any], most: int) -> None:
    """The last `most` messages, from a user's on: an API refuses a history that begins with an answer,
    or with the result of a tool call that is no longer in it.
    """
    name = {"openai.responses": "input", "gemini.generate": "contents"}.get(api, "messages")
    messages = asked.get(name)
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
    while start > 0 and not _opens(rest[start]):
        start -= 1
    asked[name] = kept + rest[start:]


def _opens(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    content = message.get("content") or message.get("parts")
    if not isinstance(content, list):
        return True
    return not any(
        isinstance(part, dict) and (part.get("type") == "tool_result" or "functionResponse" in part)
        for part in content
    )


def parse_patch(text: str, source: str) -> tuple[Mapping[str, Any], ...]:
    """A JSON Patch as it stands in a file. UsageError says what is wrong with it."""
    try:
        steps = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{source} is no JSON: {error}.") from None
    if not isinstance(steps, list) or not all(
        isinstance(one, dict) and "op" in one and "path" in one for one in steps
    ):
        raise UsageError(
            f'{source} is no JSON Patch: expected [{{"op": "replace", "path": "/model", "value": …}}].'
        )
    for step in steps:
        if step["op"] not in ("add", "remove", "replace", "test"):
            raise UsageError(
                f"{source}: op {step['op']!r} is not known; add, remove, replace and test are."
            )
    return tuple(steps)


def _patched(document: Any, step: Mapping[str, Any]) -> Any:
    """One step. A path that is not there leaves the document as it is: not every call has every field."""
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
