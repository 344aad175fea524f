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
