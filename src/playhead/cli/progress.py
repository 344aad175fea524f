"""A line on stderr that says how far long work has come. Only for a person who is watching."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from playhead import clock

T = TypeVar("T")

_PATIENCE_NS = 300_000_000
_EVERY_NS = 100_000_000


def counted(things: Sequence[T], doing: str) -> Iterator[T]:
    """`things`, one by one. Nothing is said of work that is done before anybody wonders."""
    with tally(doing) as tell:
        for done, thing in enumerate(things):
            if tell is not None:
                tell(done, len(things))
            yield thing


@contextmanager
def tally(doing: str) -> Iterator[Callable[[int, int], None] | None]:
    """As `bar`, without what a bar needs to load: for commands that must be quick where nothing is long."""
    if not sys.stderr.isatty():
        yield None
        return
    began = said = clock.mono_ns()
    shown = False

    def tell(done: int, total: int) -> None:
        nonlocal said, shown
        now = clock.mono_ns()
        if now - began > _PATIENCE_NS and (not shown or now - said > _EVERY_NS):
            said, shown = now, True
            _say(f"\r{doing}: {done:,} of {total:,} ")

    try:
        yield tell
    finally:
        if shown:
            _say("\r\x1b[K")


@contextmanager
def bar(doing: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar for work that tells how many are done, and how many there are. None: nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (f"{doing} ", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    began = clock.mono_ns()
    # Rich's own console: the bar's colours are not among ours.
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=None, visible=False)

        def tell(done: int, total: int) -> None:
            visible = clock.mono_ns() - began > _PATIENCE_NS
            progress.update(task, completed=done, total=total, visible=visible)

        yield tell


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
