"""A request as the loopback server received it: HTTP, and the conversation that an encoder found in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from playhead.llm.http.content_encoding import undo

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedMessage:
    """The consecutive texts of one side; tool results count as the user's."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """One request. Header names are in lower case; `json` is None if the body is not JSON.

    Encoders fill in `wire`, `model`, `stream` and `messages`. A WebSocket message is a request with the method `WS`.
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
        """The last text of the user's side."""
        said = [message.text for message in self.messages if message.role == "user"]
        return said[-1] if said else ""

    @property
    def turn(self) -> int:
        """1 + the number of answers of the model in this conversation."""
        return 1 + sum(message.role == "assistant" for message in self.messages)


def decode_json(body: bytes, content_encoding: str | None = None) -> Any:
    """Return the body as JSON, decompressed; None if it is not JSON."""
    try:
        return json.loads(undo(content_encoding, body).body)
    except ValueError:
        return None


def joined(spoken: list[tuple[Role, str]]) -> tuple[ReceivedMessage, ...]:
    """Merge neighbouring texts of the same role: APIs split a turn differently."""
    merged: list[ReceivedMessage] = []
    for role, text in spoken:
        if merged and merged[-1].role == role:
            said = [merged.pop().text, text]
            merged.append(ReceivedMessage(role=role, text="\n".join(filter(None, said))))
        else:
            merged.append(ReceivedMessage(role=role, text=text))
    return tuple(merged)
