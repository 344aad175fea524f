"""Decode the input and output items of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playhead.llm.decoding import arguments_of
from playhead.llm.jsontext import joined, mapping, mappings, prose, string
from playhead.llm.llm_exchange import (
    LlmMessage,
    Other,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from playhead.llm.openai.decode_chat import image_of_url

# Calls of built-in tools that the agent runs itself, and where their arguments are.
_AGENT_CALLS = {
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}
_PROVIDER_CALLS = frozenset(
    (
        *("web_search_call", "file_search_call", "code_interpreter_call"),
        *("image_generation_call", "mcp_call", "tool_search_call"),
    )
)
_UNFINISHED = ("in_progress", "incomplete")


def item_parts(item: dict[str, Any], *, ended: bool = True) -> tuple[Part, ...]:
    """Return the parts of an item; ``ended`` False: the stream stopped inside it."""
    kind = string(item.get("type")) or ("message" if "role" in item else "")
    if kind == "message":
        return content_parts(item.get("content"))
    if kind == "reasoning":
        return (_thinking(item),)
    if kind in ("function_call", "custom_tool_call", *_AGENT_CALLS):
        ended = ended and item.get("status") not in _UNFINISHED
        return (_call(item, kind, ended=ended),)
    if kind in _PROVIDER_CALLS:
        return _provider_call(item, kind)
    if kind.endswith("_output") and "call_id" in item:
        content = content_parts(item.get("output"))
        return (ToolResult(id=string(item.get("call_id")), content=content),)
    return (Other(type=kind or None, data=item),)


def messages_of(given: Any) -> tuple[LlmMessage, ...]:
    """Return the conversation in a request's ``input``.

    One turn of the model is several items there (reasoning, text, calls); here they are one message, as in other APIs.
    """
    if isinstance(given, str):
        return (LlmMessage(role="user", parts=(Text(text=prose(given)),)),)
    turns: list[tuple[str, list[Part]]] = []
    for role, parts in _turns(given):
        if role == "assistant" and turns and turns[-1][0] == "assistant":
            turns[-1][1].extend(parts)
        else:
            turns.append((role, list(parts)))
    return tuple(LlmMessage(role=role, parts=tuple(parts)) for role, parts in turns)


def content_parts(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(text=prose(content)),)
    blocks = [content] if isinstance(content, dict) else mappings(content)
    return tuple(_part(block) for block in blocks)


def _turns(given: Any) -> Iterator[tuple[str, tuple[Part, ...]]]:
    for item in mappings(given):
        parts = item_parts(item)
        role = string(item.get("role"))
        yield role or _role(parts[0] if parts else None), parts


def _role(first: Part | None) -> str:
    """Return the role of an item that does not name one."""
    if isinstance(first, ToolResult):
        return "tool"
    return "other" if isinstance(first, Other) else "assistant"


def _part(block: dict[str, Any]) -> Part:
    kind = string(block.get("type"))
    if kind in ("input_text", "output_text", "text", "summary_text"):
        return Text(text=prose(block.get("text")))
    if kind == "refusal":
        return Refusal(text=prose(block.get("refusal")))
    if kind in ("input_image", "computer_screenshot"):
        return image_of_url(string(block.get("image_url")) or "")
    return Other(type=kind, data=block)


def _thinking(item: dict[str, Any]) -> Thinking:
    pieces = [one.get("text") for one in mappings(item.get("content"))]
    if not pieces:
        # Between the summaries of a turn there is a blank line: each has a heading of its own.
        texts = [string(one.get("text")) or "" for one in mappings(item.get("summary"))]
        pieces = ["\n\n".join(texts)]
    text = joined(pieces)
    sealed = string(item.get("encrypted_content"))
    return Thinking(text=text, signature=sealed, redacted=bool(sealed) and not text)


def _call(item: dict[str, Any], kind: str, *, ended: bool) -> ToolUse:
    arguments, complete = item.get("input"), ended
    name = string(item.get("name"))
    if kind == "function_call":
        arguments, complete = arguments_of(item.get("arguments"), ended=ended)
    elif kind in _AGENT_CALLS:
        name = kind.removesuffix("_call")
        arguments = item.get(_AGENT_CALLS[kind], item.get("actions"))
    return ToolUse(
        id=string(item.get("call_id")),
        name=name,
        arguments=arguments,
        complete=complete,
    )


def _provider_call(item: dict[str, Any], kind: str) -> tuple[Part, ...]:
    given = item.get("arguments", item.get("action", item.get("code", item.get("queries"))))
    name = string(item.get("name")) or kind.removesuffix("_call")
    call = ToolUse(
        id=string(item.get("id")),
        name=name,
        arguments=arguments_of(given, ended=True)[0],
        # A search of the tool list may be left to the agent: then `execution` is `client`.
        by_provider=item.get("execution") != "client",
    )
    if not isinstance(item.get("output"), str) and not item.get("error"):
        return (call,)
    result = ToolResult(
        id=call.id,
        content=content_parts(item.get("output") or item.get("error")),
        is_error=bool(mapping(item.get("error")) or string(item.get("error"))),
        name=name,
    )
    return (call, result)
