"""A line on stderr that says how far long work has come. Only for a person who is watching."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

from playhead import clock

T = TypeVar("T")

_PATIENCE_NS = 300_000_000
_EVERY_NS = 100_000_000


def counted(things: Sequence[T], doing: str) -> Iterator[T]:
    """`things`, one by one. Nothing is said of work that is done before anybody wonders."""
    if not sys.stderr.isatty():
        yield from things
        return
    began = said = clock.mono_ns()
    shown = False
    try:
        for done, thing in enumerate(things):
            now = clock.mono_ns()
            if now - began > _PATIENCE_NS and (not shown or now - said > _EVERY_NS):
                said, shown = now, True
                _say(f"\r{doing}: {done:,} of {len(things):,} ")
            yield thing
    finally:
        if shown:
            _say("\r\x1b[K")


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
