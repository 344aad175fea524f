"""The clerk's line to the launcher. Knows what is said on it; not what a clerk does. Loads nothing: a run
whose command starts none of these programs must not wait for a clerk that nobody needs.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress

from playhead.launch.shims.shim_frames import DRAIN, WATCH

# A command that lives longer may well start something: the clerk is there by then.
_IDLE_S = 0.05


class Launcher:
    """The line to the launcher, and to the command should there be no launcher any more."""

    def __init__(self, *, asked: int, answer: int) -> None:
        self.fd = asked
        self._answer = answer
        self.command = 0

    def hear(self) -> bytes:
        """What it says; nothing: it has gone."""
        try:
            said = os.read(self.fd, 1)
            if said == WATCH:
                self.command = int.from_bytes(os.read(self.fd, 4), "big")
        except OSError:
            return b""
        return said

    def heir(self) -> int | None:
        """Readable once the command has ended; None: there is none, or no way to tell."""
        try:
            return os.pidfd_open(self.command) if self.command else None
        except OSError:
            return None

    def answer(self) -> None:
        with suppress(OSError):
            os.write(self._answer, DRAIN)

    def wait(self, door: int) -> bool:
        """Until there may be something to do; False: the run is over, and nobody came."""
        while True:
            ready = select.select([self.fd, door], [], [], _IDLE_S)[0]
            if self.fd not in ready:
                return True
            said = self.hear()
            if said == DRAIN:
                self.answer()
                return False
            if not said:
                return True
