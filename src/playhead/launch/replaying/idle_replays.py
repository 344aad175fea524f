"""End a replay that has diverged and cannot continue. Knows the processor time of a process tree; not the guests.

A process of a replay ends itself when all of its threads are in waits that Playhead knows. A thread that waits in C (it
reads a pipe that no process writes to, for example) is in no such wait, and other programs than Python have none. So
this thread beside the launcher watches the whole tree. It ends the replay only after a divergence: a replay that has
not diverged may be idle for any time, because its program waits for something that the tape does not know.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead import clock, events
from playhead.launch.sidecar import process_tree
from playhead.recording.encoder import NewEvent
from playhead.replay.diverged import DivergedFolder
from playhead.replay.report.divergence import Parting

if TYPE_CHECKING:
    from playhead.recording.runs import Run

_LOOK_EVERY_S = 0.5
# Processes of Python that know that they cannot continue end after one second, with a better message. Their sleeps
# take no time, so a tree of Python that is idle for longer waits in vain.
_PYTHON_S = 2.5
# Other programs really sleep. They get this many times `--timeout`.
_OTHERS = 3.0
# A process that only polls uses less than this share of a processor.
_MOST_SHARE = 0.02
_TICKS = os.sysconf("SC_CLK_TCK")
_ADVICE = "Replay with `--order calls` if the program has changed, wait longer with `--timeout`, or record again."


@dataclass(slots=True)
class _Still:
    """Since when the tree is idle, and the processor time that it had used by then."""

    since_ns: int = 0
    ticks: int = 0


class IdleWatch:
    """Watches the processes of one replay, in a thread of its own."""

    def __init__(self, run: Run, timeout_s: float) -> None:
        self._run = run
        self._timeout_s = timeout_s
        self._diverged = DivergedFolder(str(run.path))
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="playhead-idle")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_LOOK_EVERY_S)

    def _watch(self) -> None:
        still = _Still()
        while not self._is_over.wait(_LOOK_EVERY_S):
            seconds = self._look(still)
            if seconds >= _PYTHON_S and seconds >= self._patience() and self._diverged.look():
                self._end(seconds)
                return

    def _patience(self) -> float:
        """Return for how many seconds the tree must be idle."""
        found = process_tree.left_of(str(self._run.path))
        return _PYTHON_S if all(_is_python(one.pid) for one in found) else _OTHERS * self._timeout_s

    def _look(self, still: _Still) -> float:
        """Return for how many seconds no process of the tree has worked."""
        now = clock.mono_ns()
        found = [_state_of(one.pid) for one in process_tree.left_of(str(self._run.path))]
        ticks = sum(one[1] for one in found)
        waited = (now - still.since_ns) / 1e9
        is_idle = found and not any(one[0] in "RDT" for one in found)
        if (
            not is_idle
            or not still.since_ns
            or ticks < still.ticks
            or ticks - still.ticks > max(1, _MOST_SHARE * waited * _TICKS)
        ):
            still.since_ns, still.ticks = now, ticks
            return 0.0
        return waited

    def _end(self, seconds: float) -> None:
        parting = Parting(
            kind="stalled",
            detail=f"No process has made progress for {seconds:.0f} s after the divergence, so the replay was ended.",
            advice=_ADVICE,
        )
        self._run.recorder.append(NewEvent(events.DIVERGENCE, parting.as_json()))
        process_tree.end_all(str(self._run.path))


def _state_of(pid: int) -> tuple[str, int]:
    """Return the state letter and the processor time of a process, in clock ticks. An ended process works: its parent
    is about to learn that.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return "R", 0


def _is_python(pid: int) -> bool:
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("python")
    except OSError:
        return True  # it has ended
