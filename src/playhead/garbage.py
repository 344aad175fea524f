"""A stretch in which nobody looks for garbage. Knows the collector; not who makes the objects.

Reading a large tape makes a million objects that all stay: looking for garbage among them, again and
again, would double the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_alone() -> Iterator[None]:
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def never_among_these() -> Iterator[None]:
    """For objects that stay long and make no circles: what is alive at the end is not looked through
    again, in a process that goes on collecting. They still go when nobody refers to them any more.
    """
    gc.collect()  # or what is garbage now would stay for ever, too
    with left_alone():
        yield
        gc.freeze()
