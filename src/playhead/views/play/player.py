"""Where the playhead stands and what it shows next. Pure: moments go in, frames come out.

Knows frames, speed and pauses; not terminals, and no clock of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import ceil

from playhead.views.play.frames import Frame

SLOWEST, FASTEST = 0.125, 1024.0


class Player:
    """`moved_back` says that frames which were shown already must be taken off the screen."""

    def __init__(
        self, frames: Sequence[Frame], *, speed: float = 1.0, max_wait_ns: int | None = None
    ) -> None:
        self.frames = frames
        self.total_ns = frames[-1].at_ns if frames else 0
        self.first_ns = frames[0].at_ns if frames else 0
        self.speed = speed
        self.max_wait_ns = max_wait_ns
        self.is_paused = False
        self.moved_back = False
        # How many frames are on the screen.
        self.shown = 0
        self.position_ns = self.first_ns
        self._moments = [frame.at_ns for frame in frames]
        self._now: int | None = None

    @property
    def is_over(self) -> bool:
        return self.shown == len(self.frames)

    def advance(self, now_ns: int) -> Sequence[Frame]:
        """Time has gone on: the frames that have become due."""
        passed = 0 if self._now is None else max(0, now_ns - self._now)
        self._now = now_ns
        if self.is_paused or self.is_over:
            return ()
        self._shorten()
        self.position_ns += ceil(passed * self.speed)
        due = bisect_right(self._moments, self.position_ns, lo=self.shown)
        return self._show(due)

    def resume(self, now_ns: int) -> None:
        """Go on from here: the time since the last `advance` does not count."""
        self._now = now_ns

    def wait_ns(self) -> int | None:
        """How long until the next frame is due; None: nothing will happen by itself."""
        if self.is_paused or self.is_over:
            return None
        self._shorten()
        # Rounded up: a playhead that stops a nanosecond short of its frame would wait for ever.
        return max(0, ceil((self._moments[self.shown] - self.position_ns) / self.speed))

    def toggle(self) -> None:
        self.is_paused = not self.is_paused

    def step(self) -> Sequence[Frame]:
        """The next frame, and wait there."""
        self.is_paused = True
        if self.is_over:
            return ()
        self.position_ns = self._moments[self.shown]
        return self._show(self.shown + 1)

    def back(self) -> None:
        """One frame back, and wait there."""
        self.is_paused = True
        if self.shown:
            self.shown -= 1
            self.moved_back = True
            self.position_ns = self._moments[self.shown - 1] if self.shown else self.first_ns

    def seek(self, to_ns: int) -> Sequence[Frame]:
        """Jump. Forwards what lies between is shown at once; backwards it is taken off."""
        self.position_ns = max(self.first_ns, min(to_ns, self.total_ns))
        due = bisect_right(self._moments, self.position_ns)
        if due >= self.shown:
            return self._show(due)
        # Standing on the first frame of the tape shows it; one could not see where one is.
        self.shown = max(due, 1) if self.position_ns == self.first_ns else due
        self.moved_back = True
        return ()

    def seek_failure(self) -> Sequence[Frame]:
        """On to the next failure, and wait there."""
        for at in range(self.shown, len(self.frames)):
            if self.frames[at].is_failure:
                self.is_paused = True
                self.position_ns = self._moments[at]
                return self._show(at + 1)
        return ()

    def faster(self) -> None:
        self.speed = min(FASTEST, self.speed * 2)

    def slower(self) -> None:
        self.speed = max(SLOWEST, self.speed / 2)

    def _show(self, until: int) -> Sequence[Frame]:
        shown = self.frames[self.shown : until]
        self.shown = max(self.shown, until)
        return shown

    def _shorten(self) -> None:
        """No pause is longer than `max_wait_ns` for who is watching."""
        if self.max_wait_ns is None or self.is_over:
            return
        earliest = self._moments[self.shown] - round(self.max_wait_ns * self.speed)
        self.position_ns = max(self.position_ns, earliest)
