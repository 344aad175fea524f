"""Answer the announced calls of a recorded command if the process that watches them is killed.

Without an answer the kernel refuses every further connection of the command (ENOSYS), so the command would fail because
it is recorded. The guard has nothing else to do: it waits for the watcher, and takes no memory of its own. Knows
processes and answers; does not look at calls.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Sequence
from contextlib import suppress

from playhead.replay.fence.notifications import CallListener


def watch_guarded(
    listener: CallListener, watch: Callable[[], object], handles: Sequence[int]
) -> None:
    """Run `watch` in a new process. If it fails or is killed, let all calls happen until the last process that can
    make them has ended. `handles` belong to `watch` alone: their other ends see that it is gone.
    """
    watcher = os.fork()
    if watcher == 0:
        status = 1
        try:
            watch()
            status = 0
        finally:
            os._exit(status)
    for handle in handles:
        os.close(handle)
    _, status = os.waitpid(watcher, 0)
    if status:
        _let_all_happen(listener)


def _let_all_happen(listener: CallListener) -> None:
    listener.proceed_with_last()
    poll = select.poll()
    poll.register(listener.fd, select.POLLIN)
    while any(found & select.POLLIN for _, found in poll.poll()):
        with suppress(OSError):
            one = listener.receive()
            if one is not None:
                listener.proceed(one)
