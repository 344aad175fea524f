"""What a call of somebody's `emit` means: a kind and its data. Knows the shapes that such calls have;
not who makes them, nor what becomes of it.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

_KIND_KEYS = ("kind", "type", "event", "event_type", "name")


def understood(args: tuple[Any, ...], kwargs: dict[str, Any], fallback: str) -> tuple[str, Any]:
    """The kind of event that was emitted, and its data; `fallback` where no kind is told."""
    first = _word(args[0]) if args else None
    if first is not None:
        return first, _rest(args[1:], kwargs)
    if len(args) == 1 and not kwargs:
        return _of_object(args[0], fallback)
    for key in _KIND_KEYS:
        kind = _word(kwargs.get(key))
        if kind is not None:
            return kind, _rest(args, {name: v for name, v in kwargs.items() if name != key})
    return fallback, _rest(args, kwargs)


def _of_object(event: Any, fallback: str) -> tuple[str, Any]:
    if isinstance(event, dict):
        for key in _KIND_KEYS:
            kind = _word(dict.get(event, key))
            if kind is not None:
                return kind, {name: v for name, v in dict.items(event) if name != key}
        return fallback, event
    for key in _KIND_KEYS:
        kind = _word(getattr(event, key, None))
        if kind is not None:
            return kind, event
    return type(event).__name__, event


def _word(value: Any) -> str | None:
    """A kind as a word: a text, or an enum that stands for one."""
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    return str.__str__(value) if isinstance(value, str) else None


def _rest(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not args:
        return dict(kwargs) if kwargs else None
    if len(args) == 1 and not kwargs:
        return args[0]
    if len(args) == 1 and isinstance(args[0], dict):
        return {**args[0], **kwargs}
    return {"args": list(args), **kwargs}
