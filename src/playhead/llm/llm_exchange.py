"""The decoded form of LLM requests and responses, the same for every API, and one line about each. Data only.

``None`` always means "the API did not say": an unknown token count is never 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, overload


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
        """Return the calls that the agent itself has to make."""
        return tuple(p for p in self.parts if isinstance(p, ToolUse) and not p.by_provider)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmExchange:
    """A request with its response; ``response`` is None when nothing arrived."""

    request: LlmRequest
    response: LlmResponse | None


def text_of(parts: tuple[Part, ...]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


_WIDTH = 100
_ARGUMENT = 24
_SHORT = 40


@overload
def summary(exchange: LlmRequest, *, width: int = _WIDTH) -> str: ...
@overload
def summary(exchange: LlmResponse, *, width: int = _WIDTH) -> str: ...
def summary(exchange: LlmRequest | LlmResponse, *, width: int = _WIDTH) -> str:
    """Return one line: ``claude-sonnet-4-5 · 3 messages · 2 tools``, or ``"The weather…" → search(q="Paris")``."""
    if isinstance(exchange, LlmRequest):
        return shortened(_of_request(exchange), width)
    return shortened(_of_response(exchange), width)


def shortened(text: str, width: int) -> str:
    """Return `text` on one line of at most `width` characters, safe to print.

    Text of a model is untrusted: control characters could drive the terminal.
    """
    # Four times the width is enough to fill it, also when every second character is dropped.
    flat = " ".join(text[: width * 4 + _SHORT].split())
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in flat)
    if len(clean) <= width and len(text) <= width * 4 + _SHORT:
        return clean
    return clean[: width - 1].rstrip() + "…"


def _of_request(request: LlmRequest) -> str:
    words = [request.model or "unknown model"]
    if not request.complete and not request.messages:
        words.append(f"unreadable: {request.reason}")
    else:
        words.append(_counted(len(request.messages), "message"))
    if request.tools:
        words.append(_counted(len(request.tools), "tool"))
    if request.previous_id is not None:
        words.append(f"after {request.previous_id}")
    return " · ".join(words)


def _of_response(response: LlmResponse) -> str:
    said = []
    if response.text.strip():
        said.append(_quoted(response.text))
    elif response.thinking.strip() and not response.tool_calls:
        said.append(f"thought: {_quoted(response.thinking)}")
    if response.tool_calls:
        calls = ", ".join(_call(call) for call in response.tool_calls)
        said.append(f"→ {calls}")
    refused = "" if response.refusal is None else f"refused: {_quoted(response.refusal)}"
    line = (" ".join(said), refused, _ending(response))
    return " · ".join(word for word in line if word) or "nothing said"


def _ending(response: LlmResponse) -> str:
    if response.error is not None:
        return _error(response.error)
    if not response.complete:
        return f"cut: {response.reason}"
    if response.stop_reason in ("max_tokens", "length", "MAX_TOKENS", "max_output_tokens"):
        return "token limit reached"
    return ""


def _error(error: LlmError) -> str:
    # OpenAI's code ("rate_limit_exceeded") is more specific than its type ("tokens").
    named = error.code if error.code and not error.code.isdigit() else error.type
    head = " ".join(str(word) for word in (error.status, named) if word)
    return ": ".join(word for word in (head or "error", error.message) if word)


def _call(call: ToolUse) -> str:
    name = call.name or "unknown tool"
    if isinstance(call.arguments, dict):
        given = ", ".join(
            f"{shortened(str(key), _ARGUMENT)}={_argument(value)}"
            for key, value in list(call.arguments.items())[:8]
        )
    else:
        given = "" if call.arguments is None else _argument(call.arguments)
    return f"{name}({given})" if call.complete else f"{name}({given}…"


def _argument(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(shortened(value, _ARGUMENT), ensure_ascii=False)
    if isinstance(value, (dict, list)):
        return "{…}" if isinstance(value, dict) else "[…]"
    return shortened(json.dumps(value), _ARGUMENT)


def _quoted(text: str) -> str:
    return f'"{shortened(text.strip(), _SHORT)}"'


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
