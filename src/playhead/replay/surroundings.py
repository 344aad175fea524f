"""What a replay puts around a program beside answers: the tape's time, and a guard against leaks.

Knows the order in which they come and go; each thing is elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead.recording import order_slot
from playhead.replay import stalls
from playhead.replay.fence import leaks
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.replay.playhead import Playhead
from playhead.replay.time import virtual_time
from playhead.replay.time.taped_source import TapedSource


def enter(
    mode: Any, source: Any, *, is_hooked: Callable[[], bool], is_stand_in: Callable[[int], bool]
) -> None:
    """Before the hooks are put in place. Of a mode or a source that is not ours, nothing is known.

    `is_hooked`: whether a hook is starting a process just now; `is_stand_in(pid)`: whether a child only
    plays a taped one.
    """
    if isinstance(source, TapedSource):
        if isinstance(mode, ReplayMode):
            _know_the_end(mode, source)
        source.time.strangers.is_stand_in = is_stand_in
        if isinstance(mode, ReplayMode) and mode.table:
            source.time.order = Playhead(mode.table, source.time)
            order_slot.begin(source.time.order)
            source.time.on_stall = stalls.ender(mode)
        virtual_time.begin(source.time)
    if isinstance(mode, ReplayMode):
        leaks.begin(mode, is_hooked)


def leave() -> None:
    """The inverse, after the hooks are out."""
    leaks.end()
    order_slot.end()
    if (time := virtual_time.active()) is not None:
        virtual_time.end(time)


def _know_the_end(mode: ReplayMode, source: TapedSource) -> None:
    """A run that was killed while it waited ends in that wait again."""
    took = mode.recording.tape.manifest.duration_s
    if took is not None and mode.recording.was_killed:
        source.time.end_ns = source.time.now_ns() + round(took * 1e9)
        source.time.on_end = mode.die
