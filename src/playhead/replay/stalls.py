"""A replay in which every thread waits for something that will never come: it ends, and says where.

Knows frames and the mode that writes divergences; not how it is found out that all threads wait.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from playhead.recording import where
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.replay.report.divergence import Parting

_ADVICE = "Replay with `--order calls` if the program has changed, wait longer with `--timeout`, or record again."
EXIT_CODE = 3


def ender(mode: ReplayMode) -> Callable[[float], None]:
    """What to call after so many seconds in which nothing happened and nothing could."""

    def end(seconds: float) -> None:
        waits = "\n".join(f"  {line}" for line in waiting_threads())
        detail = (
            f"Every thread has waited for {seconds:.0f} s for something that never comes:\n{waits}"
        )
        parting = Parting(kind="stalled", detail=detail, advice=_ADVICE)
        mode.part(parting)
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.write(2, f"playhead: {parting}\n".encode("utf-8", "backslashreplace"))
        os._exit(EXIT_CODE)

    return end


def waiting_threads() -> list[str]:
    """Each thread of the program, with the place in its own code where it waits."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = []
    for ident, frame in sys._current_frames().items():
        at = _own_frame(frame)
        if at is not None and ident in names:
            place = f"{where.shown(at.f_code.co_filename)}:{at.f_lineno} {at.f_code.co_name}"
            found.append(f"{names[ident]} at {place}")
    return found


def _own_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the program's own code; of a library's, where it has none."""
    first = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not where.is_foreign(file):
            return frame
        if first is None and not where.is_own(file):
            first = frame
        frame = frame.f_back
    return first
