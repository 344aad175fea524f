"""Install and remove everything a replay needs besides answers: the tape's time, the playhead, the guard against
leaks, and the end of a replay in which every thread waits for something that cannot happen.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from playhead import clock
from playhead.host.later import Later
from playhead.recording import lanes, order_slot, where
from playhead.replay.diverged import DivergedSoFar
from playhead.replay.fence import leaks
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.replay.playhead import Playhead
from playhead.replay.time import script_parent, virtual_time
from playhead.replay.time.taped_source import TapedSource
from playhead.replay.time.virtual_time import VirtualTime

if TYPE_CHECKING:
    from playhead.replay.report import divergence
else:
    divergence = Later("playhead.replay.report.divergence")  # most replays have none

_ADVICE = "Replay with `--order calls` if the program has changed, wait longer with `--timeout`, or record again."
EXIT_CODE = 3


def ender(mode: ReplayMode, time: VirtualTime) -> Callable[[float], None]:
    """Return the function that ends the replay after this many seconds in which nothing happened and nothing could."""
    has_begun = iter((False,))

    def end(seconds: float) -> None:
        if time.is_ended_by_script() or next(has_begun, True):
            return  # the second case: another thread ends the replay just now
        if mode.is_request_done:
            # The server waits for further requests, which this replay does not send.
            mode.look_a_last_time()
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os._exit(max(0, mode.recording.tape.manifest.exit_code or 0))
        waits = "\n".join(f"  {line}" for line in waiting_threads())
        detail = f"No thread has made progress for {seconds:.0f} s. The threads wait here:\n{waits}"
        parting = divergence.Parting(kind="stalled", detail=detail, advice=_ADVICE)
        mode.part(parting)
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.write(2, f"playhead: {parting}\n".encode("utf-8", "backslashreplace"))
        os._exit(EXIT_CODE)

    return end


def waiting_threads() -> list[str]:
    """Return each thread of the program, with the place in its own code where it waits."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = []
    for ident, frame in clock.frames().items():
        at = _own_frame(frame)
        if at is not None and ident in names:
            place = f"{where.shown(at.f_code.co_filename)}:{at.f_lineno} {at.f_code.co_name}"
            found.append(f"{names[ident]} at {place}")
    return found


def _own_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the program's own code; if there is none, of a library."""
    first = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not where.is_foreign(file):
            return frame
        if first is None and not where.is_own(file):
            first = frame
        frame = frame.f_back
    return first


def enter(
    mode: Any, source: Any, *, is_hooked: Callable[[], bool], is_stand_in: Callable[[int], bool]
) -> None:
    """Install everything, before the hooks are installed. A mode or a source of another type is ignored.

    `is_hooked`: whether a hook is starting a process just now; `is_stand_in(pid)`: whether a child only stands in for a
    taped one.
    """
    if isinstance(source, TapedSource):
        if isinstance(mode, ReplayMode):
            _know_the_end(mode, source)
        source.time.waits.strangers.is_stand_in = is_stand_in
        if isinstance(mode, ReplayMode) and mode.table:
            source.time.order = Playhead(mode.table, source.time)
            begun, closed = mode.recording.segments, mode.recording.closed
            mode.table.cut_lanes = {begun[one].lane for one in begun.keys() - closed}
            order_slot.begin(source.time.order)
            source.time.order.on_skip = mode.note_skip
            source.time.on_stall = ender(mode, source.time)
            source.time.has_diverged = DivergedSoFar(mode).check
        virtual_time.begin(source.time)
    if isinstance(mode, ReplayMode):
        leaks.begin(mode, is_hooked)


def leave() -> None:
    """Remove everything, after the hooks are removed."""
    leaks.end()
    order_slot.end()
    if (time := virtual_time.active()) is not None:
        virtual_time.end(time)


def _know_the_end(mode: ReplayMode, source: TapedSource) -> None:
    """Set the end of the tape: a replay of a run that was killed while it waited ends in that wait again."""
    took = mode.recording.tape.manifest.duration_s
    if took is not None and mode.recording.was_killed:
        source.time.end_ns = source.time.now_ns() + round(took * 1e9)
        source.time.on_end = mode.die
        own = [
            one for one, start in mode.recording.segments.items() if start.lane == lanes.MAIN.name
        ]
        if not mode.recording.closed.issuperset(own):
            source.time.is_ended_by_script = script_parent.may_signal
