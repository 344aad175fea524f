"""Which threads of a replay wait, and whether anything can happen before one of them is woken.

Knows every wait that goes through `VirtualTime`, and looks at all other threads and children; not what time it is.
"""

from __future__ import annotations

import _thread
from typing import TYPE_CHECKING

from playhead import clock
from playhead.replay.time import outside_activity
from playhead.replay.time.outside_activity import OutsideActivity

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from playhead.replay.time.waits import ThreadWait

    # Returns whether the deadline of a wait has come.
    HasCome = Callable[[ThreadWait], bool]


class WaitTable:
    """The waits of now, by thread."""

    def __init__(self) -> None:
        self.now: dict[int, ThreadWait] = {}
        # Counts the waits that begin and end. A check of all threads takes a while; a changed count means that the
        # check is stale.
        self.changes = 0
        # The threads and children that wait in a way that we do not know.
        self.strangers = OutsideActivity()
        # The count of changes when everything was last seen to be still, and since when.
        self._still = (0, 0)

    def enter(self, me: int, wait: ThreadWait | None) -> None:
        """Note the wait of a thread; None: it has ended."""
        self.changes += 1
        if wait is None:
            self.now.pop(me, None)
        else:
            self.now[me] = wait

    def is_waiting(self, thread: int) -> bool:
        """Return whether this thread is in a known wait and has not been released."""
        wait = self.now.get(thread)
        return wait is not None and (wait.gate is None or not wait.gate.is_open)

    def leave(self) -> ThreadWait | None:
        """End the wait of this thread, because it handles a signal. Return the wait, for `return_to`."""
        me = _thread.get_ident()
        wait = self.now.get(me)
        self.enter(me, None)
        return wait

    def return_to(self, wait: ThreadWait) -> None:
        """Resume the wait of this thread after it has handled the signal."""
        self.enter(_thread.get_ident(), wait)

    def start_anew(self) -> None:
        """Forget the other threads: a forked child does not have them."""
        mine = self.now.get(_thread.get_ident())
        self.now = {} if mine is None else {_thread.get_ident(): mine}
        prints = self.strangers.prints
        self.strangers = OutsideActivity(self.strangers.is_stand_in)
        self.strangers.prints = prints

    def is_stalled(self, seconds: float, has_come: HasCome) -> bool:
        """Return whether every thread has been in a known wait without a deadline for that long."""
        changes, since = self._still
        now = clock.mono_ns()
        waits = self.now.copy()
        is_stuck = (
            changes == self.changes
            and not any(
                one.deadline is not None or one.first() is not None for one in waits.values()
            )
            and all(
                ident in waits or outside_activity.is_ours(frame)
                for ident, frame in clock.frames().items()
            )
            and not outside_activity.is_fork_server()
            and self.all_wait(has_come)
        )
        if not is_stuck:
            self._still = (self.changes, now)
        return is_stuck and now - since >= seconds * 1e9

    def still_ns(self) -> int:
        """Return for how long every thread has been in a known wait that nothing can end; 0 if that is not known."""
        changes, since = self._still
        return clock.mono_ns() - since if since and changes == self.changes else 0

    def all_wait(self, has_come: HasCome) -> bool:
        """Return whether every thread and child waits.

        Checks for running threads first and for woken threads afterwards: a thread that has just run may have woken
        another one before it began to wait.
        """
        if outside_activity.is_one_starting():
            return False
        frames = clock.frames()
        try:
            waits = self.now.copy()
            if not self._strangers_are_idle(frames, waits):
                return False
        finally:
            # One of them is below this function, and would be in a cycle with its variable. Then the variables of all
            # threads live until the garbage collector comes: files stay open, and CPython before 3.12.7 crashes when it
            # collects a memoryview of `multiprocessing.Queue` in a cycle (CPython issue 77894).
            frames.clear()
        if not self.strangers.children_are_idle() or not self.strangers.has_all():
            return False
        return all(
            one.is_stuck() and not one.is_released() and not has_come(one) for one in waits.values()
        )

    def _strangers_are_idle(
        self, frames: dict[int, FrameType], waits: dict[int, ThreadWait]
    ) -> bool:
        for ident, frame in frames.items():
            if ident not in waits and not self.strangers.is_idle(ident, frame):
                return False
        return self.strangers.threads_are_settled(frames)
