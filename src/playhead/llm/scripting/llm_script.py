"""The vocabulary of a script: replies, tool calls, failures, conditions. Data only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

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
