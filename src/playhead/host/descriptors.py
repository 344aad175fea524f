"""What a forked child of the launcher keeps of what its parent had open. Knows descriptors; not whose."""

from __future__ import annotations

import gc
import os


def keep_only(*kept: int) -> None:
    """Let go of everything else: whoever waits for the end of a pipe must not wait for us.

    The parent's objects stay where they are: one that was found to be garbage here would close the
    number of a descriptor that it once had, and that is somebody else's by now.
    """
    gc.freeze()
    for name in os.listdir("/dev/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue  # the one by which the folder was read
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
