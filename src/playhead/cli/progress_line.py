"""Progress of long work on stderr. Silent unless stderr is a terminal."""

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
    """Yield `things` one by one and show progress once it takes longer than 0.3 s."""
    with tally(doing) as tell:
        for done, thing in enumerate(things):
            if tell is not None:
                tell(done, len(things))
            yield thing


@contextmanager
def tally(doing: str) -> Iterator[Callable[[int, int], None] | None]:
    """Like `bar`, but as plain text without importing rich: for commands that are usually fast."""
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
    """A progress bar: call the yielded function with (done, total). None without a terminal."""
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
