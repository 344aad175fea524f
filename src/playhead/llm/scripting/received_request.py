"""A request as the loopback server received it. Knows HTTP's parts and what a wire read in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from playhead.llm.http.content_encoding import undo

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedMessage:
    """What one side said before the other spoke; tool results are the user's side."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """One request. Header names are in lower case; `json` is None where the body is not JSON.

    `wire`, `model`, `stream` and `messages` are filled in for requests to a model. A message
    over a WebSocket is a request with the method `WS`.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    json: Any = None
    number: int = 0
    http_version: str = "1.1"
    wire: str | None = None
    model: str | None = None
    stream: bool = False
    messages: tuple[ReceivedMessage, ...] = ()

    @property
    def prompt(self) -> str:
        """The last thing that the user's side said."""
        said = [message.text for message in self.messages if message.role == "user"]
        return said[-1] if said else ""

    @property
    def turn(self) -> int:
        """1 where the model has not spoken yet in this conversation."""
        return 1 + sum(message.role == "assistant" for message in self.messages)


def decode_json(body: bytes, content_encoding: str | None = None) -> Any:
    """The body as JSON, None where it is none; compressed bodies are looked into."""
    try:
        return json.loads(undo(content_encoding, body).body)
    except ValueError:
        return None


def joined(spoken: list[tuple[Role, str]]) -> tuple[ReceivedMessage, ...]:
    """Messages with neighbours of one role made one: wires differ in how they cut a turn up."""
    merged: list[ReceivedMessage] = []
    for role, text in spoken:
        if merged and merged[-1].role == role:
            said = [merged.pop().text, text]
            merged.append(ReceivedMessage(role=role, text="\n".join(filter(None, said))))
        else:
            merged.append(ReceivedMessage(role=role, text=text))
    return tuple(merged)
