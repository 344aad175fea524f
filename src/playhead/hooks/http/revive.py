"""Exceptions of HTTP clients, raised again from a tape. Knows which classes may come back; how
they are rebuilt is `answers`' business.

A tape is data from a stranger, so nothing is imported for it: a class comes back only if the
program has loaded its module itself, and only if it is an exception.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from playhead.errors import Divergence, PlayheadError
from playhead.hooks.answers import error_of

_DEEPEST = 8


def revived(frozen: Any, name: str, depth: int = 0) -> BaseException:
    """The exception that `frozen` was, with its causes; a Divergence where it cannot be had."""
    if isinstance(frozen, BaseException):
        return frozen
    try:
        error = error_of(frozen, LOADED, what=name)
    except Divergence as problem:
        return problem
    cause = frozen.get("cause")
    if isinstance(cause, dict) and depth < _DEEPEST:
        earlier = revived(cause, name, depth + 1)
        error.__cause__ = None if isinstance(earlier, Divergence) else earlier
    return error


class _Loaded(Mapping[str, type]):
    """Every exception class that the program has loaded, by `module:qualname`."""

    def __getitem__(self, name: str) -> type:
        module, _, path = name.partition(":")
        found: Any = sys.modules.get(module)
        for part in path.split("."):
            found = getattr(found, part, None)
        if not isinstance(found, type) or not issubclass(found, BaseException):
            raise KeyError(name)
        if issubclass(found, PlayheadError):
            raise KeyError(name)  # what a replay says about itself is never an answer
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(())  # looked up by name only

    def __len__(self) -> int:
        return 0


LOADED = _Loaded()
