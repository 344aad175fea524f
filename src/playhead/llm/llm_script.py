"""The vocabulary of a script (replies, tool calls, failures, conditions), and requests as the scripted server
received them. Pure; the providers' encoders and the server share it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from playhead.llm.http_headers import undo

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"]
Ending = Literal["close", "reset", "stall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call in a reply.

    `arguments` as text are sent unchanged, invalid JSON included, where the API carries arguments as text. A
    missing `id` is generated in the provider's form.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedUsage:
    """Token counts of a reply; each encoder adds them up as its provider does.

    `input` excludes cached tokens; `reasoning` is a part of `output`. None: estimated from the texts.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedFailure:
    """An error answer. With `after`, a stream that fails after that many events.

    `retry` False tells SDKs not to retry.
    """

    status: int
    message: str | None = None
    retry_after: float | None = None
    retry: bool = True
    after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """An answer that stops after that many events: closed, reset, or silent until the client disconnects.

    `mid_event` also sends the first half of the next event.
    """

    after: int
    mid_event: bool = False
    how: Ending = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Conditions of a reply; all that are given must hold.

    `contains` and `matches` look at the last user message (tool results included), `conversation` at the whole
    conversation with the system prompt. `turn` is 1 before the model's first answer; `nth` counts all requests.
    """

    contains: str | None = None
    matches: str | None = None
    conversation: str | None = None
    turn: int | None = None
    model: str | None = None
    path: str | None = None
    nth: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer of the model: thinking, then text, then tool calls."""

    text: str = ""
    thinking: str = ""
    tool_calls: Sequence[ToolCall] = ()
    stop_reason: StopReason | None = None
    usage: ScriptedUsage = field(default_factory=ScriptedUsage)
    model: str | None = None
    delay: float = 0.0
    chunk_delay: float = 0.0
    chunks: int | None = None
    error: ScriptedFailure | None = None
    cut: Cut | None = None
    when: When | None = None
    repeat: int | Literal["forever"] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmScript:
    """The replies, in the order in which they are given out."""

    replies: Sequence[Reply]


def stop_reason_of(reply: Reply) -> StopReason:
    if reply.stop_reason is not None:
        return reply.stop_reason
    return "tool_use" if reply.tool_calls else "end_turn"


def pieces(text: str, count: int | None) -> list[str]:
    """Split the text into `count` parts of nearly equal length; None: about one per dozen characters."""
    if not text:
        return []
    wanted = count if count is not None else min(16, 1 + len(text) // 12)
    parts = max(1, min(wanted, len(text)))
    edges = [len(text) * part // parts for part in range(parts + 1)]
    return [text[start:end] for start, end in pairwise(edges)]


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
        """Return the last text of the user's side."""
        said = [message.text for message in self.messages if message.role == "user"]
        return said[-1] if said else ""

    @property
    def turn(self) -> int:
        """Return 1 + the number of answers of the model in this conversation."""
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
