"""The points of a tape, and the place of each in the order. Knows packed points; does not enforce the order
(`playhead`).

Each process of a run has an order of its own. Places of different processes are compared by their times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.recording import points
from playhead.recording.calls import Moment

if TYPE_CHECKING:
    from playhead.events import Event

# Points that a program still reaches when it ends because of Ctrl-C: it prints the traceback.
_LAST_KINDS = (points.OUTPUT, points.INTERRUPT)


class Place:
    """One point of the tape. `rank` orders all of them; `loop` and `turn` name the iteration of an event
    loop, and are 0 outside of one.
    """

    ns: int
    loop: int
    turn: int

    __slots__ = ("has_come", "index", "loop", "ns", "passed", "rank", "segment", "turn", "what")

    def __init__(self, segment: str, index: int, row: list[Any]) -> None:
        self.segment = segment
        self.index = index
        self.ns, self.loop, self.turn = row[:3]
        self.what = tuple(row[3:])
        self.rank = 0
        # Whether the replay has passed this place, with or without the lane of the point.
        self.passed = False
        # For a callback: whether the event loop has received it.
        self.has_come = False

    @property
    def position(self) -> int | None:
        """Return the number of callbacks that the loop had run in its turn before the task or callback of this place;
        None if not known.
        """
        detail = self.what[2 if type(self.what[0]) is int else 3 :]
        index = detail[0] if detail else None
        if type(index) is not int:
            return None
        return index if index >= 0 else -1 - index

    @property
    def is_of_loop(self) -> bool:
        """Return whether the loop's own thread passed the callback of this place to `call_soon_threadsafe`."""
        detail = self.what[3]
        return detail == points.FROM_LOOP or (type(detail) is int and detail < 0)

    @property
    def queued(self) -> int | None:
        """Return how many callbacks the loop had already scheduled for its next turn, for a point of a call; None if
        not known.
        """
        queued = self.what[3] if type(self.what[0]) is int and len(self.what) > 3 else None
        return queued if type(queued) is int else None

    @property
    def behind(self) -> list[str] | None:
        """Return the names of callbacks that ran behind the task of this place in its turn, for a point of a call; None
        if not known.
        """
        names = self.what[4] if type(self.what[0]) is int and len(self.what) > 4 else None
        return [one for one in names if type(one) is str] if type(names) is list else None

    def is_in_turn_of(self, other: Place) -> bool:
        """Return whether both were taken in the same iteration of the same event loop."""
        return bool(self.turn) and (self.segment, self.loop, self.turn) == (
            other.segment,
            other.loop,
            other.turn,
        )

    def __repr__(self) -> str:
        return f"<{self.rank}: {' '.join(map(str, self.what))}>"


class TapedPrint(NamedTuple):
    """A write of one process to stdout or stderr, while other processes print, too."""

    ns: int
    segment: str
    lane: str
    number: int
    # Whether the process has not printed, but taken an item from a queue that several processes read.
    is_item: bool


class PointsTable:
    """All places of a tape, found by call or by lane."""

    def __init__(self, taped: list[Event], *, is_resumed: bool = False) -> None:
        # The processes of a resumed run are replayed in one process, which must survive the signal that ended the
        # first.
        self._has_signals = not is_resumed
        self.segments: dict[str, list[Place]] = {}
        self._calls: dict[tuple[str, int, int], Place] = {}
        self._lanes: dict[tuple[str, str, int], Place] = {}
        # Where Ctrl-C ended the program, by its lane.
        self._interrupts: dict[str, Place] = {}
        # Signals that the program handled, by the lane of its main thread.
        self._signals: dict[str, list[Place]] = {}
        # Callbacks that an event loop got by `call_soon_threadsafe`, by segment and loop.
        self._callbacks: dict[tuple[str, int], list[Place]] = {}
        self._of_lane: dict[str, list[Place]] = {}
        self._at: dict[str, int] = {}
        # Main lanes of processes that did not close their part of the tape: they were killed, or called `os._exit`.
        self.cut_lanes: set[str] = set()
        # Whether the tape says when which lane took a lock, and the data for each lock.
        self.has_locks = False
        self._locks: dict[str, list[tuple[int, str]]] = {}
        # The writes of processes that print to the same streams, in their order.
        self.prints: list[TapedPrint] = []
        # Lines that HTTP libraries logged about their connections, by stream.
        self.log_lines: dict[str, list[str]] = {}
        # The numbers of event loops, by the lane in which they began, and a count of the loops of that lane.
        self._loops: dict[tuple[str, int], int] = {}
        # The lanes of jobs for which a pool of threads started a worker.
        self._new_workers: set[str] = set()
        # The lanes of jobs that the program cancelled before a worker took them.
        self._withdrawn: set[str] = set()
        # The number of the forked child that each wait for any child returned, by lane and number of the wait.
        self._reaped: dict[tuple[str, int], Any] = {}
        # Timers that never fired.
        self._cancelled: dict[tuple[str, str, int], Any] = {}
        for event in taped:
            order = self.segments.setdefault(event.segment, [])
            for row in points.unpack(event.data):
                self._add(event.segment, order, row)
        self._rank()
        self.prints.sort()

    def __bool__(self) -> bool:
        return bool(self.segments)

    def call(self, segment: str, call: int, at_ns: int) -> Place | None:
        return self._calls.get((segment, call, at_ns))

    def lane(self, lane: str, kind: str, number: int) -> Place | None:
        return self._lanes.get((lane, kind, number))

    @property
    def was_interrupted(self) -> bool:
        """Return whether Ctrl-C ended the program."""
        return bool(self._interrupts)

    @property
    def awaits_signal(self) -> bool:
        """Return whether a signal may be the only event that is left."""
        return bool(self._interrupts or self._signals)

    def interrupt(self, lane: str) -> Place | None:
        """Return the place where Ctrl-C ended the program, if the replay has not reached it yet. Only for tapes without
        signals: later tapes have the signal itself.
        """
        place = None if lane in self._signals else self._interrupts.get(lane)
        return None if place is None or place.passed else place

    def last_interrupt(self, lane: str) -> Place | None:
        """Return the same place if nothing else except output is left for this lane."""
        place = self.interrupt(lane)
        own = self._of_lane.get(lane, ())
        # A program does not always come to the last point of a call.
        begun = {one.what[0] for one in own if one.passed}
        left = (one.what for one in own if not one.passed)
        is_all = all(
            what[0] in begun if type(what[0]) is int else what[1] in _LAST_KINDS for what in left
        )
        return place if is_all else None

    def signal(self, lane: str) -> Place | None:
        """Return the next signal that the main thread with this lane handled, if the replay has not reached it yet."""
        places = self._signals.get(lane)
        while places and places[0].passed:
            places.pop(0)
        return places[0] if places else None

    def signals_left(self, lane: str, number: int) -> int:
        """Return how many signals with this number the main thread with this lane has yet to handle."""
        name = f"{points.SIGNAL}:{int(number)}"
        return sum(one.what[1] == name and not one.passed for one in self._signals.get(lane, ()))

    def signal_of_parent(self, lane: str, until_ns: int) -> Place | None:
        """Return the last signal that the parent of the process with this main lane handled until then."""
        found = [one for one in self._parent_signals(lane) if one.ns <= until_ns]
        return found[-1] if found else None

    def had_signal_of_parent(self, lane: str, number: int) -> bool:
        """Return whether the process with this main lane has handled such a signal, which its parent had passed on."""
        name = f"{points.SIGNAL}:{int(number)}"
        places = self._of_lane.get(lane, ())
        return bool(self._parent_signals(lane)) and any(
            one.what[1] == name and one.passed for one in places
        )

    def _parent_signals(self, lane: str) -> list[Place]:
        while "/" in lane:
            lane = lane.rpartition("/")[0]
            if lane in self._signals:
                return self._signals[lane]
        return []

    def has_signal(self, number: int) -> bool:
        """Return whether a signal with this number is yet to come."""
        name = f"{points.SIGNAL}:{int(number)}"
        return any(
            one.what[1] == name and not one.passed
            for places in self._signals.values()
            for one in places
        )

    def callbacks(self, segment: str, loop: int) -> list[Place]:
        """Return the callbacks that this event loop got by `call_soon_threadsafe`, in the order of the tape."""
        return self._callbacks.get((segment, loop), [])

    def loop(self, lane: str, number: int) -> int | None:
        """Return the number on the tape of the n-th event loop that began in this lane; None if not known."""
        return self._loops.get((lane, number))

    def has_new_worker(self, job: str) -> bool:
        """Return whether a pool of threads started a worker when the job with this lane was submitted."""
        return job in self._new_workers

    def was_withdrawn(self, job: str) -> bool:
        """Return whether the program cancelled the job with this lane before a worker took it."""
        return job in self._withdrawn

    def reaped(self, lane: str, number: int) -> int | None:
        """Return which fork of the program the n-th wait for any child returned in this lane; 0: none had ended."""
        found = self._reaped.get((lane, number))
        return found if type(found) is int else None

    def cancelled(self, lane: str, kind: str, number: int) -> Any:
        """Return the delay of a timer that never fired on the tape; None if there was no such timer."""
        return self._cancelled.get((lane, kind, number))

    def lock_runs(self, name: str) -> list[tuple[int, str]]:
        """Return the lanes that took this lock, each with the time from which on it did."""
        return sorted(self._locks.get(name, ()))

    def know_lanes(self, lanes: dict[tuple[str, int], str]) -> None:
        """Learn in which lane each call was made; `lanes` is keyed by segment and number."""
        for order in self.segments.values():
            for place in order:
                who = place.what[0]
                lane = lanes.get((place.segment, who)) if type(who) is int else who
                if lane is not None:
                    self._of_lane.setdefault(lane, []).append(place)

    def know_processes(self, segments: dict[str, Event], served: set[str]) -> None:
        """Learn which processes a replay runs: the command, the Pythons of a script, their forks, and those that
        `multiprocessing` started. The others were started by one of the `served` calls, and the replay plays their
        output.
        """
        found: set[str] = set()
        # A process starts after its parent, so that the parent is known by then.
        for segment, event in sorted(segments.items(), key=lambda one: one[1].mono):
            parent = event.absolute(event.parent)
            if parent is None or parent in served or event.lane.endswith("/~"):
                continue
            if "/" not in event.lane or parent.rpartition(":")[0] in found:
                found.add(segment)
        own = [one for one in self.prints if one.segment in found]
        # One process prints in its own order.
        self.prints = own if len({one.segment for one in own}) > 1 else []

    def ahead(self, lane: str) -> Place | None:
        """Return the next point of this lane that has not passed."""
        places = self._of_lane.get(lane)
        if not places:
            return None
        at = self._at.get(lane, 0)
        while at < len(places) and places[at].passed:
            at += 1
        self._at[lane] = at
        return places[at] if at < len(places) else None

    def moment(self, segment: str, call: int, at_ns: int, *, left: int | None = None) -> int:
        """Return a moment of a call with its place, if it has one. `left`: when the program left the call."""
        place = self._calls.get((segment, call, at_ns))
        end = None if left is None else self._calls.get((segment, call, left))
        if place is None and end is None:
            return at_ns
        made = Moment(at_ns)
        made.place, made.left = place, end
        return made

    def _add(self, segment: str, order: list[Place], row: list[Any]) -> None:
        who = row[3]
        if type(who) is int:
            if type(row[4]) is int:
                place = Place(segment, len(order), row)
                order.append(place)
                self._calls[segment, who, row[4]] = place
            return
        if (
            type(who) is not str
            or len(row) < 7
            or type(row[4]) is not str
            or type(row[5]) is not int
        ):
            return
        kind, number = row[4], row[5]
        name, _, rest = kind.partition(":")
        if name == points.CANCELLED:
            self._cancelled[who, f"{points.TIMER}:{rest}", number] = row[6]
            return
        if name == points.LOOP:
            self._loops[who, number] = row[1]
            return
        if name in (points.STARTED, points.WITHDRAWN):
            (self._new_workers if name == points.STARTED else self._withdrawn).add(who)
            return
        if name == points.REAPED:
            self._reaped[who, number] = row[6]
            return
        if name == points.LOG:
            if type(row[6]) is str:
                self.log_lines.setdefault(rest, []).extend(row[6].splitlines())
            return
        if name == points.PRINTED:
            self.prints.append(TapedPrint(row[0], segment, who, number, row[6] == points.TAKEN))
            return
        if name == points.LOCKS:
            self.has_locks = True
            return
        if name == points.LOCK:
            self._locks.setdefault(rest, []).append((number, who))
            return
        if name == points.SIGNAL and not self._has_signals:
            return
        place = Place(segment, len(order), row)
        order.append(place)
        self._lanes[who, kind, number] = place
        if name == points.INTERRUPT:
            self._interrupts[who] = place
        if name == points.SIGNAL and rest.isdecimal():
            self._signals.setdefault(who, []).append(place)
        # Also those that the loop's own thread gave to the loop, because a job had ended before the loop asked for its
        # result. In a replay the thread of that job may still be on its way.
        if name == points.SOON and place.turn:
            self._callbacks.setdefault((segment, place.loop), []).append(place)

    def _rank(self) -> None:
        """Rank points by time, but keep their order on the tape within a process: two threads may have read the clock
        and appended their points in different orders.
        """
        keyed: list[tuple[int, str, int, Place]] = []
        for segment, order in self.segments.items():
            latest = 0
            for place in order:
                latest = max(latest, place.ns)
                keyed.append((latest, segment, place.index, place))
        keyed.sort(key=lambda one: one[:3])
        for rank, (*_, place) in enumerate(keyed):
            place.rank = rank
