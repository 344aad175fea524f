"""Read fields of untrusted JSON: a value of the right type, or None."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


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
    """A number of tokens: a whole number that is not negative (True is not 1 here)."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def total(*counts: int | None) -> int | None:
    """Return the sum of the known counts; None when none is known."""
    known = [one for one in counts if one is not None]
    return sum(known) if known else None


def joined(pieces: Iterable[Any]) -> str:
    """The pieces of a streamed text, put together."""
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
