"""Turn Python objects, JSON files and TOML files into an LlmScript.

A wrong key or value is refused here, with its place in the script: as an odd answer during an agent's run it
would be hard to find.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import tomllib

from playhead.errors import UsageError
from playhead.llm.llm_script import (
    Cut,
    Ending,
    LlmScript,
    Reply,
    ScriptedFailure,
    ScriptedUsage,
    StopReason,
    ToolCall,
    When,
)

ScriptSource = (
    LlmScript | Sequence[Reply | str | Mapping[str, Any]] | Mapping[str, Any] | str | Path
)
Reader = Callable[[Any, str], Any]


class ScriptError(UsageError):
    """The script is invalid; the message has the place, the value and what was expected."""


def load_script(source: ScriptSource) -> LlmScript:
    """A script from a file's path (.json or .toml), a list of replies, or {"replies": [...]}."""
    if isinstance(source, LlmScript):
        return source
    if isinstance(source, (str, os.PathLike)):
        return load_script(_parsed(Path(source)))
    if isinstance(source, Mapping):
        fields = _fields(source, "script", {"replies": _anything, "defaults": _anything})
        if "replies" not in fields:
            raise ScriptError('The script has no replies. Expected {"replies": [ ... ]}.')
        return _script(fields["replies"], fields.get("defaults", {}))
    return _script(source, {})


def load_reply(source: Reply | str | Mapping[str, Any], place: str = "reply") -> Reply:
    """One reply from a text, from its mapping form, or as it is."""
    if isinstance(source, Reply):
        return source
    if isinstance(source, str):
        return Reply(text=source)
    return Reply(**_fields(source, place, _REPLY))


def _parsed(path: Path) -> Any:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ScriptError(f"Cannot read the script {path}: {error.strerror}.") from error
    try:
        return tomllib.loads(raw.decode()) if path.suffix == ".toml" else json.loads(raw)
    except ValueError as error:
        raise ScriptError(f"{path} is not valid {path.suffix[1:] or 'JSON'}: {error}.") from error


def _script(replies: Any, defaults: Any) -> LlmScript:
    if not isinstance(replies, Sequence) or isinstance(replies, (str, bytes)):
        raise ScriptError(f"replies: expected a list, found {_shown(replies)}.")
    shared = _fields(defaults, "defaults", _REPLY)
    loaded = []
    for index, reply in enumerate(replies):
        if isinstance(reply, Reply):
            loaded.append(reply)
            continue
        own = {"text": reply} if isinstance(reply, str) else reply
        loaded.append(Reply(**{**shared, **_fields(own, f"replies[{index}]", _REPLY)}))
    return LlmScript(replies=tuple(loaded))


def _fields(value: Any, place: str, readers: Mapping[str, Reader]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ScriptError(f"{place}: expected a table of fields, found {_shown(value)}.")
    for key in value:
        if key not in readers:
            near = difflib.get_close_matches(str(key), readers, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(readers)}."
            raise ScriptError(f"{place}: there is no field {key!r}. {hint}")
    return {key: readers[key](item, f"{place}.{key}") for key, item in value.items()}


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:80]


def _anything(value: Any, _place: str) -> Any:
    return value


def _kind(expected: str, types: tuple[type, ...], least: float | None = None) -> Reader:
    def read(value: Any, place: str) -> Any:
        # bool is an int to Python; `repeat = true` is a slip, not the number one.
        fits = isinstance(value, types) and (bool in types or not isinstance(value, bool))
        if not fits or (least is not None and value < least):
            raise ScriptError(f"{place}: expected {expected}, found {_shown(value)}.")
        return value

    return read


def _one_of(choices: Sequence[str]) -> Reader:
    def read(value: Any, place: str) -> Any:
        if value not in choices:
            raise ScriptError(
                f"{place}: expected one of {', '.join(choices)}; found {_shown(value)}."
            )
        return value

    return read


def _made(kind: type, readers: Mapping[str, Reader], short: str = "") -> Reader:
    """Read a table into `kind`; a bare number sets the field named by `short`."""

    def read(value: Any, place: str) -> Any:
        if isinstance(value, kind):
            return value
        table = {short: value} if short and isinstance(value, int) else value
        fields = _fields(table, place, readers)
        try:
            return kind(**fields)
        except TypeError as error:
            raise ScriptError(f"{place}: {str(error).partition('() ')[2]}.") from error

    return read


def _regex(value: Any, place: str) -> str:
    pattern: str = _text(value, place)
    try:
        re.compile(pattern)
    except re.error as error:
        raise ScriptError(f"{place}: {pattern!r} is not a regular expression: {error}.") from error
    return pattern


def _tool_calls(value: Any, place: str) -> tuple[ToolCall, ...]:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise ScriptError(f"{place}: expected a list, found {_shown(value)}.")
    return tuple(_tool_call(item, f"{place}[{index}]") for index, item in enumerate(value))


def _repeat(value: Any, place: str) -> Any:
    return value if value == "forever" else _repeats(value, place)


_text = _kind("a text", (str,))
_flag = _kind("true or false", (bool,))
_seconds = _kind("seconds, 0 or more", (int, float), 0)
_count = _kind("a whole number, 0 or more", (int,), 0)
_ordinal = _kind("a whole number, 1 or more", (int,), 1)
_repeats = _kind('a whole number, 1 or more, or "forever"', (int,), 1)
_status = _kind("an HTTP status from 400 on", (int,), 400)
_tool_call = _made(
    ToolCall,
    {"name": _text, "arguments": _kind("a table or a text", (Mapping, str)), "id": _text},
)
_REPLY: Mapping[str, Reader] = {
    "text": _text,
    "thinking": _text,
    "tool_calls": _tool_calls,
    "stop_reason": _one_of(get_args(StopReason)),
    "usage": _made(
        ScriptedUsage,
        dict.fromkeys(("input", "output", "cache_read", "cache_write", "reasoning"), _count),
    ),
    "model": _text,
    "delay": _seconds,
    "chunk_delay": _seconds,
    "chunks": _ordinal,
    "error": _made(
        ScriptedFailure,
        {
            "status": _status,
            "message": _text,
            "retry_after": _seconds,
            "retry": _flag,
            "after": _count,
        },
        short="status",
    ),
    "cut": _made(
        Cut,
        {"after": _count, "mid_event": _flag, "how": _one_of(get_args(Ending))},
        short="after",
    ),
    "when": _made(
        When,
        {
            "contains": _text,
            "matches": _regex,
            "conversation": _text,
            "turn": _ordinal,
            "model": _text,
            "path": _text,
            "nth": _ordinal,
        },
    ),
    "repeat": _repeat,
}
