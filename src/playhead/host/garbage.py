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
    """What is alive at the end counts as old: the collector would look through all of it at once otherwise,
    just because it is new. Not where the program has frozen objects itself, which would be undone.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
