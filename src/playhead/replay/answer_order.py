"""Give answers to an agent that is not Python in the order in which the recorded agent got them.

Such an agent has no points on the tape: its requests to the proxy and its programs are all that is known of
it. So an answer waits until every call that the agent had made by then is there, and every answer that it had
by then has been given. That cannot block an unchanged agent, because none of those calls can depend on the
answer. A changed agent may never make one of them: after some seconds without any call it is not waited for. These
seconds do not count while the agent works: on a busy machine it may need longer for its next call.

Knows taped calls and their times; does not know HTTP or shims. One object for the sidecar; thread-safe.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import suppress

from playhead import clock
from playhead.replay.answered_connections import AnsweredConnections, taped_connections
from playhead.replay.matching.matcher import is_side
from playhead.replay.matching.taped import TapedCall, TapedRun

_POLL_S = 0.004
# Without any call for this long, the calls that are missing are not waited for if the agent is idle or has used as much
# CPU time meanwhile.
_PATIENCE_NS = 5_000_000_000
# After an answer the agent gets time to work on it before it gets the next answer of calls that ran at the same time:
# until it is idle, or has used this much CPU time.
_SETTLING_NS = 1_000_000_000
# The limits in wall time are longer by this factor: so much slower may a machine be because of other work.
_SLOWEST = 12
_IDLE_LOOKS = 3
_LOOK_EVERY_NS = 100_000_000
_BUSY = frozenset({b"R", b"D"})
# Fields of /proc/PID/stat behind the name of the program, and the unit of both times.
_USER_TIME, _SYSTEM_TIME = 11, 12
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class AnswerOrder:
    """The moments of the calls of one recorded sidecar, and which of them the replay has reached."""

    def __init__(
        self,
        recording: TapedRun,
        command: int | None = None,
        patience_ns: int = _PATIENCE_NS,
        folder: object = None,
    ) -> None:
        """`folder` is that of the replay, where servers of the same run report; None: there are no reports."""
        self._command = command
        self._patience_ns = patience_ns
        self._lock = threading.Lock()
        self._begun: set[str] = set()
        self._ended: set[str] = set()
        self._left_out: set[str] = set()
        self._progress_at = clock.mono_ns()
        # CPU time of the agent at that moment, and when it is looked at next.
        self._progress_cpu: int | None = None
        self._look_at = 0
        self._idle_looks = 0
        self._calls = {call.ref: call for call in _served_here(recording)}
        # (moment, call, whether it is the call's end)
        self._moments: list[tuple[int, str, bool]] = []
        for ref, call in self._calls.items():
            self._moments.append((call.event.mono, ref, False))
            if call.outcome is not None and not _was_ended_by_reader(call):
                self._moments.append((call.outcome.mono, ref, True))
        self._connections = None if folder is None else AnsweredConnections(folder)
        if self._connections is not None and self._moments:
            for moment, ref in taped_connections(recording.calls):
                self._moments.append((moment, ref, True))
        self._moments.sort()
        self._first = 0

    def begin(self, ref: object) -> None:
        """Note that the agent has made this taped call."""
        self._note(self._begun, ref)

    def end(self, ref: object) -> None:
        """Note that the agent has its whole answer."""
        self._note(self._ended, ref)

    def is_due(self, ref: object, at_ns: int) -> bool:
        """Return whether `wait` would return at once."""
        return next(self._pauses(ref, at_ns), None) is None

    def wait(self, ref: object, at_ns: int) -> None:
        """Wait until the part of the answer that came `at_ns` after the call may be given."""
        for pause in self._pauses(ref, at_ns):
            clock.sleep(pause)

    async def wait_async(self, ref: object, at_ns: int) -> None:
        for pause in self._pauses(ref, at_ns):
            await asyncio.sleep(pause)

    def _pauses(self, ref: object, at_ns: int) -> Iterator[float]:
        call = self._calls.get(str(ref))
        if call is None:
            return
        moment = _moment_of(call, at_ns)
        while self._is_early(call.ref, moment):
            yield _POLL_S
        if self._was_answered_meanwhile(call, moment):
            yield from self._until_settled()

    def _is_early(self, ref: str, moment: int) -> bool:
        for one in () if self._connections is None else self._connections.new():
            self._note(self._ended, one)
        with self._lock:
            missing = [one for at, one, _ in self._open(moment) if one != ref]
            if not missing:
                return False
            if self._is_stuck():
                self._left_out.update(missing)
                return False
            return True

    def _is_stuck(self) -> bool:
        """Return whether the agent will not make any of the missing calls, as far as one can know."""
        now = clock.mono_ns()
        waited = now - self._progress_at
        if self._command is None or waited > _SLOWEST * self._patience_ns:
            return waited > self._patience_ns
        if now < self._look_at:
            return False
        self._look_at = now + _LOOK_EVERY_NS
        is_idle, cpu_ns = _activity(self._command)
        self._idle_looks = self._idle_looks + 1 if is_idle else 0
        if self._progress_cpu is None:
            self._progress_cpu = cpu_ns
        if waited <= self._patience_ns:
            return False
        return self._idle_looks >= _IDLE_LOOKS or cpu_ns - self._progress_cpu > self._patience_ns

    def _open(self, moment: int) -> Iterator[tuple[int, str, bool]]:
        """Return the moments of the tape before this one that the replay has not reached yet."""
        moments = self._moments
        while self._first < len(moments) and self._is_reached(moments[self._first]):
            self._first += 1
        for at in range(self._first, len(moments)):
            if moments[at][0] >= moment:
                return
            if not self._is_reached(moments[at]):
                yield moments[at]

    def _is_reached(self, one: tuple[int, str, bool]) -> bool:
        _, ref, is_end = one
        return ref in self._left_out or ref in (self._ended if is_end else self._begun)

    def _was_answered_meanwhile(self, call: TapedCall, moment: int) -> bool:
        """Return whether another answer came between this call and its own answer."""
        return any(
            is_end and call.event.mono < at < moment and ref != call.ref and ref in self._calls
            for at, ref, is_end in self._moments
        )

    def _until_settled(self) -> Iterator[float]:
        latest = clock.mono_ns() + _SLOWEST * _SETTLING_NS
        before = None if self._command is None else _activity(self._command)[1]
        idle = 0
        while idle < _IDLE_LOOKS and clock.mono_ns() < latest:
            yield _POLL_S
            if self._command is None or before is None:
                idle += 1
                continue
            is_idle, cpu_ns = _activity(self._command)
            if cpu_ns - before > _SETTLING_NS:
                return
            idle = idle + 1 if is_idle else 0

    def _note(self, where: set[str], ref: object) -> None:
        with self._lock:
            where.add(str(ref))
            self._progress_at = clock.mono_ns()
            self._progress_cpu = None


# The order of this sidecar's replay; None while recording.
current: AnswerOrder | None = None


def follow(recording: TapedRun, command: int | None, folder: object = None) -> None:
    global current  # noqa: PLW0603  one per process: the proxy and the shims answer one agent
    current = AnswerOrder(recording, command, folder=folder)


def _served_here(recording: TapedRun) -> list[TapedCall]:
    """Return the agent's own calls that the sidecar recorded. None if the agent used a WebSocket: the messages of one
    conversation have no answers of their own.
    """
    inner = {one.ref for below in recording.below.values() for one in below}
    found = []
    for call in recording.calls:
        data = call.event.data
        if data.get("via") != "shim" and data.get("library") != "proxy":
            continue
        url = call.request.get("url") if isinstance(call.request, dict) else None
        if isinstance(url, str) and url.startswith("ws"):
            return []
        if call.ref not in inner and not is_side(call):
            found.append(call)
    return found


def _was_ended_by_reader(call: TapedCall) -> bool:
    """Return whether the program ended because the reader of its output did: `yes | head -1`. Then the reader must not
    wait for this end.
    """
    marks = (one.data for one in call.chunks if one.data.get("stream") == "closed")
    return any(one.get("text") in {"stdout", "stderr"} for one in marks)


def _moment_of(call: TapedCall, at_ns: int) -> int:
    """Return the moment `at_ns` after the start of a call. A call starts before its event is written, by tens of
    milliseconds if it is the first one of a tape. Counted from the event, its end would lie behind calls that the agent
    made only after that end, and they would be waited for.
    """
    moment = call.event.mono + at_ns
    took_ns = None if call.outcome is None else call.outcome.data.get("took_ns")
    if call.outcome is None or not isinstance(took_ns, int):
        return moment
    return min(moment, call.outcome.mono - took_ns + at_ns)


def _activity(pid: int) -> tuple[bool, int]:
    """Return whether every thread of a process and of those below it waits, and the CPU time that they have used."""
    is_idle, used = True, 0
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", "rb") as file:
                words = file.read().rpartition(b") ")[2].split()
            is_idle = is_idle and words[0] not in _BUSY
            used += (int(words[_USER_TIME]) + int(words[_SYSTEM_TIME])) * _TICK_NS
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                below = [_activity(int(one)) for one in file.read().split()]
            is_idle = is_idle and all(one for one, _ in below)
            used += sum(one for _, one in below)
    return is_idle, used
