"""The decoded form of LLM requests and responses, the same for every API. Data only.

``None`` always means "the API did not say": an unknown token count is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal by the model, or by the filter in front of it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """Reasoning. ``signature`` is the opaque proof or ciphertext that is sent back next turn."""

    text: str
    signature: str | None = None
    redacted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool call that the model asks for.

    ``arguments`` is the decoded value; where the text is not whole JSON (a cut stream, a
    model's mistake, a free-text tool) it is the text itself. ``complete`` is False when
    the end of the arguments never arrived. ``by_provider``: run on the provider's side, so
    the agent only reads about it.
    """

    id: str | None
    name: str | None
    arguments: Any
    complete: bool = True
    by_provider: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool. ``id`` is the id of the ToolUse; ``is_error`` None: not stated."""

    id: str | None
    content: tuple[Part, ...]
    is_error: bool | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture, by address or as base64 text."""

    media_type: str | None
    url: str | None = None
    data: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A part of a kind that has no class here (documents, audio, searches), unchanged."""

    type: str | None
    data: Any


Part = Text | Refusal | Thinking | ToolUse | ToolResult | Image | Other


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmMessage:
    """One message of a conversation. Google's ``model`` is called ``assistant`` here too."""

    role: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return text_of(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmTool:
    """A tool that is offered to the model. ``type`` is the API's own word for its kind."""

    name: str | None
    description: str | None = None
    schema: Any = None
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmRequest:
    """One request. ``params`` holds all other top-level fields of the body, unchanged.

    ``previous_id``: the server keeps the conversation under this id, and ``messages`` only has the new part.
    ``complete`` False: the body could not be decoded completely; ``reason`` says why.
    """

    api: str
    model: str | None
    system: str | None = None
    messages: tuple[LlmMessage, ...] = ()
    tools: tuple[LlmTool, ...] = ()
    stream: bool | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    previous_id: str | None = None
    complete: bool = True
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts, normalised: ``input_tokens`` is everything that the model read, caches included.

    ``cache_read_tokens`` and ``cache_write_tokens`` are parts of it, ``reasoning_tokens`` is a part of
    ``output_tokens``, ``cache_write_1h_tokens`` a part of ``cache_write_tokens``.
    """

    input_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_1h_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmError:
    """An error as the provider reported it. ``retry_after`` is in seconds."""

    status: int | None
    type: str | None
    message: str | None
    code: str | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmResponse:
    """One response. ``complete`` is False when it was cut off, or ended by an error; ``reason`` says why.

    A response that *is* an error (a whole 429) is complete. ``alternatives`` are the parts of further choices.
    """

    api: str
    status: int | None = None
    id: str | None = None
    model: str | None = None
    parts: tuple[Part, ...] = ()
    stop_reason: str | None = None
    usage: Usage | None = None
    error: LlmError | None = None
    complete: bool = True
    reason: str | None = None
    service_tier: str | None = None
    alternatives: tuple[tuple[Part, ...], ...] = ()

    @property
    def text(self) -> str:
        return text_of(self.parts)

    @property
    def thinking(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Thinking))

    @property
    def refusal(self) -> str | None:
        words = [part.text for part in self.parts if isinstance(part, Refusal)]
        return "".join(words) if words else None

    @property
    def tool_calls(self) -> tuple[ToolUse, ...]:
        """The calls that the agent itself has to make."""
        return tuple(p for p in self.parts if isinstance(p, ToolUse) and not p.by_provider)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmExchange:
    """A request with its response; ``response`` is None when nothing arrived."""

    request: LlmRequest
    response: LlmResponse | None


def text_of(parts: tuple[Part, ...]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))
