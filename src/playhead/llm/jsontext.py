"""Parse untrusted JSON that may be cut off anywhere, and read fields of the expected type from it.

Repairs a cut text without inventing data: half a number, half a key or half an id is dropped, half a sentence is
kept. Does not know the fields, except which of them hold prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# Strings whose beginning is useful. Half an id or half a model name is wrong.
_PROSE = frozenset(
    (
        *("text", "content", "thinking", "reasoning_content", "reasoning", "refusal", "message"),
        *("arguments", "partial_json", "input", "delta"),
    )
)
# Arguments of a tool call: a cut object is kept as raw text, because a repaired one would look complete.
_ARGUMENTS = frozenset(("input", "args"))

# Unrolled, so that the search for the end of an unfinished string takes linear time.
_TOKEN = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+|"',
    re.DOTALL,
)
_SOUND_START = re.compile(r'[^"\\]*(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*)*')
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A JSON value, or the part that arrived. ``reason`` says why it is incomplete."""

    value: Any
    reason: str | None = None

    @property
    def whole(self) -> bool:
        return self.reason is None


@dataclass(slots=True)
class _Open:
    """A container whose end has not been seen."""

    kind: str
    start: int
    sound: int
    key: str | None = None


def parse(text: str) -> Parsed:
    """Parse a text that may be cut off; the value is None if it is not JSON."""
    try:
        return Parsed(value=_DECODER.decode(text))
    except RecursionError:
        return Parsed(value=None, reason="the JSON is nested too deeply")
    except ValueError as error:
        reason = f"not JSON: {error}"
    try:
        mended = _close(text)
        value = None if mended is None else _DECODER.decode(mended)
    except (ValueError, RecursionError):
        value = None
    if value is None:
        return Parsed(value=None, reason=reason if text.strip() else "the body is empty")
    return Parsed(value=value, reason="the JSON is cut off")


def parse_many(text: str) -> tuple[list[Any], str]:
    """Return the consecutive JSON values, and the rest of the text that is not JSON."""
    values: list[Any] = []
    at = _skip_blank(text, 0)
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        values.append(value)
        at = _skip_blank(text, at)
    return values, text[at:]


def _skip_blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _close(text: str) -> str | None:
    """Close open strings, arrays and objects; None when nothing is open."""
    stack: list[_Open] = []
    for token in _TOKEN.finditer(text):
        word, start, end = token[0], token.start(), token.end()
        if word in "{[":
            stack.append(_Open(kind=word, start=start, sound=end))
        elif not stack:
            return None
        elif word in "}]":
            stack.pop()
            if not stack:
                return None
            _value_ends(stack[-1], end)
        elif word == '"':
            return _close_string(text, start, stack)
        elif word not in ",:":
            _scalar(stack[-1], word, end, len(text))
    if not stack:
        return None
    return _as_raw_arguments(text, stack) or text[: stack[-1].sound] + _ends(stack)


def _scalar(inside: _Open, word: str, end: int, length: int) -> None:
    if inside.kind == "{" and inside.key is None:
        inside.key = word[1:-1]
    elif word[0] == '"' or end < length:
        # A number or a literal at the very end may be incomplete: 12 of 1234 is not 12.
        _value_ends(inside, end)


def _value_ends(inside: _Open, end: int) -> None:
    inside.key = None
    inside.sound = end


def _close_string(text: str, start: int, stack: list[_Open]) -> str:
    raw = _as_raw_arguments(text, stack)
    if raw is not None:
        return raw
    inside = stack[-1]
    if inside.kind == "[" or inside.key not in _PROSE:
        return text[: inside.sound] + _ends(stack)
    sound = _SOUND_START.match(text, start + 1)
    end = start + 1 if sound is None else sound.end()
    return text[:end] + '"' + _ends(stack)


def _as_raw_arguments(text: str, stack: list[_Open]) -> str | None:
    for depth in range(1, len(stack)):
        if stack[depth - 1].kind == "{" and stack[depth - 1].key in _ARGUMENTS:
            start = stack[depth].start
            return text[:start] + json.dumps(text[start:]) + _ends(stack[:depth])
    return None


def _ends(stack: list[_Open]) -> str:
    return "".join("}" if one.kind == "{" else "]" for one in reversed(stack))


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def mappings(value: Any) -> list[dict[str, Any]]:
    return [item for item in items(value) if isinstance(item, dict)]


def string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def prose(value: Any) -> str:
    """Return a text that can be encoded; empty if the value is not text."""
    return mended(value) if isinstance(value, str) else ""


def flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def count(value: Any) -> int | None:
    """Return a number of tokens: a whole number that is not negative (True is not 1 here)."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def total(*counts: int | None) -> int | None:
    """Return the sum of the known counts; None when none is known."""
    known = [one for one in counts if one is not None]
    return sum(known) if known else None


def joined(pieces: Iterable[Any]) -> str:
    """Return the pieces of a streamed text, joined."""
    return mended("".join(piece for piece in pieces if isinstance(piece, str)))


def mended(text: str) -> str:
    r"""Text that can be encoded.

    Servers written in JavaScript cut a stream between the halves of a surrogate pair, and
    JSON escapes carry each half alone: ``"\ud83d"`` + ``"\ude00"`` must become one
    character again. A first half at the very end is still waiting for its second.
    """
    if text.isascii():  # CPython knows that without looking
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        if "\ud800" <= text[-1] <= "\udbff":
            text = text[:-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
