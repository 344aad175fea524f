"""One line about a request or a response, for terminals and lists. Does not know any API."""

from __future__ import annotations

import json
from typing import Any, overload

from playhead.llm.llm_exchange import LlmError, LlmRequest, LlmResponse, ToolUse

_WIDTH = 100
_ARGUMENT = 24
_SHORT = 40


@overload
def summary(exchange: LlmRequest, *, width: int = _WIDTH) -> str: ...
@overload
def summary(exchange: LlmResponse, *, width: int = _WIDTH) -> str: ...
def summary(exchange: LlmRequest | LlmResponse, *, width: int = _WIDTH) -> str:
    """``claude-sonnet-4-5 · 3 messages · 2 tools``, or ``"The weather…" → search(q="Paris")``."""
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
