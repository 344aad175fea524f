"""The slot that holds the playhead of this process, for hooks. Separate from `replay/playhead`, because a recorded
program never loads that module.

A hook on something that happens in a lane calls `wait_for` before it, which keeps the order in a replay, and `happened`
after it, which notes a point while recording.
"""

from __future__ import annotations

import _thread
import os
from contextvars import ContextVar

from playhead.host.later import Later
from playhead.host.lean import Protocol, partial
from playhead.recording import lanes, points

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any

    from playhead.recording.lanes import Lane
    from playhead.recording.recorder import Recorder
    from playhead.replay.loop_points import LoopState
    from playhead.replay.playhead import Playhead
    from playhead.replay.points_table import Place
else:
    signal = Later("signal")

_active: Playhead | None = None
# Set in a replay while a task lets the others run once, because its point is in the next turn of its loop.
between_turns: ContextVar[bool | None] = ContextVar("playhead_between_turns", default=None)
# One function per kind of event loop: returns the state of the loop that runs in this thread, or None.
_loops: list[Callable[[], LoopState | None]] = []


# Whether taped output was released but is not in its pipes yet.
is_playing: Callable[[], bool] = lambda: False  # noqa: E731  replaced by the stage of taped processes


class PrintLock:
    """Admits one writer of stdout and stderr at a time while recording, so that points are in the order of the writes.

    The same lock is held while output is assigned to children. Otherwise a child that starts or ends in another thread
    could claim the text that this thread is printing, and a replay would print it twice. Re-entrant: a signal handler
    may print.
    """

    def __init__(self) -> None:
        self.start_anew()

    def start_anew(self) -> None:
        """Make a new lock, also in a forked child, which lacks the thread that held the old one."""
        self.lock = _thread.RLock()


printing = PrintLock()
os.register_at_fork(after_in_child=printing.start_anew)


# Called before (None) and after (with the bytes) the program itself prints to a descriptor, while children write to the
# same streams. None if no child does. Set by `hooks/process/output_files`.
settle_children: Callable[[int, bytes | None], Callable[[], None] | None] | None = None


# Called in a replay before the program itself prints: prints the output that taped servers wrote before that moment.
# None if there are no taped servers.
show_children: Callable[[], None] | None = None


class PrintTurns(Protocol):
    """The turns of one process among several that print, or take items from a queue that they share."""

    def __enter__(self) -> None:
        """Begin to print, in a replay when the other processes have printed what came before."""

    def __exit__(self, *raised: object) -> None:
        """End to print."""

    def await_item(self) -> None:
        """Wait in a replay until this process may take the next item of a shared queue."""

    def note_item(self) -> None:
        """Note that the item is taken. The caller holds the lock of the queue."""


# Entered around each write of this process to stdout or stderr, while other processes of the program may print, too.
# None if there are no others, or their order is not kept.
prints: PrintTurns | None = None

# Makes the context manager that records the order. Set by `hooks/order/outputs`.
record_prints: Callable[[Recorder], PrintTurns] | None = None


def share_output(recorder: Recorder) -> None:
    """Keep the order between the output of this process and that of others from now on: the program forks, starts
    processes with `multiprocessing`, or is such a process.
    """
    global prints  # noqa: PLW0603  one slot a process
    if prints is not None:
        return
    if _active is not None:
        prints = _active.share_output(recorder)
    elif record_prints is not None and points.of_process() is not None:
        prints = record_prints(recorder)


def watch_loop(state_here: Callable[[], LoopState | None]) -> None:
    _loops.append(state_here)


def loop_here() -> LoopState | None:
    """Return the state of the event loop that runs in this thread; None if no loop runs."""
    if _active is None:
        return None
    return next((state for one in _loops if (state := one()) is not None), None)


def active() -> Playhead | None:
    """Return the playhead that keeps the order of the tape; None if nothing is replayed, or its order is not kept."""
    head = _active
    return None if head is None or head.time.is_real else head


def begin(head: Playhead) -> None:
    global _active  # noqa: PLW0603  one slot a process
    _active = head
    points.forget_steps()
    head.signals.watch()


def end() -> None:
    global _active, show_children, prints  # noqa: PLW0603  one slot a process
    _active = show_children = prints = None
    _loops.clear()


def make_state(
    wake: Callable[[], None],
    make_future: Callable[[], Any],
    place_last: Callable[[int], None] | None = None,
    arrange: Callable[[Any, int, list[str] | None, int], int] | None = None,
) -> LoopState:
    if _active is None:
        raise AssertionError("only a replay keeps an order")
    return _active.make_state(wake, make_future, place_last, arrange)


def is_kept() -> bool:
    """Return whether points of the code running now are noted or waited for."""
    return (points.active() is not None or _active is not None) and not lanes.is_carried()


def wait_for(kind: str) -> Place | None:
    """Wait, before an event of that kind happens in this lane, until the replay reaches its place. Return the place;
    None if nothing is replayed, or the tape does not know it.
    """
    head = active()
    if head is None:
        return None
    lane = lanes.current.get()
    place = head.take(lane, kind)
    while place is not None:
        # A signal handler that runs during the wait may come to a point of the same kind. In the recorded run it came
        # there first, so it gets this place.
        taken = head.signals.begin_wait(lane, kind, place)
        try:
            head.arrive(place, loop_here(), acts=True)
        except BaseException:
            # The handler has raised, so the event did not happen in the recorded run either.
            head.signals.give_back(taken)
            raise
        if not head.signals.end_wait(taken):
            return place
        place = head.take(lane, kind)
    return place


def expects(kind: str, detail: str) -> bool:
    """Return whether the next event of that kind in this lane has this detail on the tape."""
    head = active()
    if head is None:
        return False
    lane = lanes.current.get()
    number = lane.count(kind)
    lane.give_back(kind, number)
    place = head.table.lane(lane.name, kind, number)
    return place is not None and place.what[3] == detail


def is_due(kind: str) -> bool:
    """Return whether the next event of that kind in this lane need not wait for a point of another lane."""
    head = active()
    if head is None:
        return True
    lane = lanes.current.get()
    number = lane.count(kind)
    lane.give_back(kind, number)
    place = head.table.lane(lane.name, kind, number)
    return place is None or place.passed or head.is_next(place)


def job_end(took_ns: int, worker: int | None) -> str:
    """Return the detail of the point at which a job is done. As text: a number would be a position in the turn of an
    event loop.
    """
    return str(took_ns) if worker is None else f"{took_ns} {worker}"


def _took_ns_of(detail: Any) -> int | None:
    """Return the time since the job was submitted; None if not known. A tape is untrusted data."""
    return _number_in(detail, 0)


def worker_of(detail: Any) -> int | None:
    """Return the number of the worker that ran the job; None if not known."""
    return _number_in(detail, 1)


def _number_in(detail: Any, index: int) -> int | None:
    parts = detail.split(" ") if isinstance(detail, str) else []
    # At most 18 digits: Python refuses to read very long numbers.
    is_known = len(parts) > index and len(parts[index]) <= 18 and parts[index].isdecimal()
    return int(parts[index]) if is_known else None


def submit(job: Lane) -> None:
    """Note that this lane submits a job, so it has come to the moment at which the recorded lane did that. The clock of
    a replay stands still while the program computes. Without this moment, a timeout for the result of the job would
    begin too early, and could pass before the job is done.
    """
    head = active()
    place = None if head is None else head.table.lane(job.name, points.DONE, 1)
    took = None if place is None else _took_ns_of(place.what[3])
    if place is not None and took is not None:
        lanes.current.get().reach(place.ns - took)


def has_run(job: Lane) -> bool:
    """Return whether this job was done at its end on the tape; False if nothing is replayed."""
    head = active()
    return head is not None and head.table.lane(job.name, points.DONE, 1) is not None


def step() -> None:
    """Count a step: this thread is about to make a call. Deliver the signals that came before this step in the recorded
    program.
    """
    # Handlers run in the main thread. Code inside a call does not run again in a replay, but a handler that runs in the
    # middle of a call does. The checks call no helper function, because they run before every call.
    if _thread.get_ident() != points.main_thread or (
        (lanes.inside.get() or lanes.printing.get()) and not lanes.in_handler()
    ):
        return
    if _active is not None and not _active.time.is_real:
        _active.signals.step()
    # Not counted if a handler has raised: the recorded program did not come here then.
    points.count_step()


def print_step(write: Callable[[str], int], text: str) -> int:
    """Print a text with `write`, a method in C, and count a step as in `step`."""
    if _thread.get_ident() != points.main_thread or (
        (lanes.inside.get() or lanes.printing.get()) and not lanes.in_handler()
    ):
        return write(text)
    if _active is not None and not _active.time.is_real:
        _active.signals.step()
    count: int = points.count_with(partial(write, text))
    return count


def send_to_self(number: int) -> bool:
    """Note that the program sends a signal to itself. Return whether the tape delivers it, so that it must
    not be sent.
    """
    head = active()
    return head is not None and head.signals.send(number)


def interrupt_if_due() -> None:
    """Interrupt this lane if it has come to something that is not on the tape, and Ctrl-C interrupted the recorded
    program before that. If a thread of the program sends the signal, this lane waits for it.
    """
    head = active()
    if head is not None:
        head.signals.await_next()
    place = None if head is None else head.table.last_interrupt(lanes.current.get().name)
    if head is None or place is None or loop_here() is not None:
        return
    head.arrive(place)
    signal.raise_signal(signal.SIGINT)


def acted() -> None:
    """Note that the thread has performed the action that it waited for with `wait_for`. Other threads may then pass
    their points; they may also do so while this thread waits.
    """
    if _active is not None:
        _active.acted()


def knows(moment: int) -> bool:
    """Return whether the tape knows the place of this moment of a call, and the order is kept."""
    return getattr(moment, "place", None) is not None and active() is not None


def place_ahead(moment: int) -> Place | None:
    """Return the place of this moment, if the replay has not reached it yet."""
    place: Place | None = getattr(moment, "place", None)
    return None if place is None or place.passed or active() is None else place


def pend_read(
    moment: int,
    run: Callable[[], None],
    is_dead: Callable[[], bool],
    call_soon: Callable[[Callable[[], bool]], None],
) -> bool:
    """Call `run` in the thread of the event loop that runs here, when the replay comes to this moment. Return False if
    the moment has passed, or if no loop runs here. In the recorded run a selector reported the moment, so it comes
    behind the callbacks that are ready. `call_soon`: see `Pending`.
    """
    place, state = place_ahead(moment), loop_here()
    if place is None or state is None:
        return False
    state.pend(place, run, is_dead, call_soon).comes_last = True
    return True


def take_read(moment: int) -> bool:
    """Pass this moment for a task of an event loop that reads without waiting. Return False if the replay has not come
    to it.
    """
    place: Place | None = getattr(moment, "place", None)
    state = loop_here()
    if place is None or state is None:
        return False
    return place.passed or state.take(place)


def pass_by(moment: int) -> None:
    """Mark this moment as passed: the program will not come to it, because it already knows its content."""
    place, head = place_ahead(moment), active()
    if place is not None and head is not None:
        head.pass_by(place)


def come_to(moment: int) -> None:
    """Pass this moment, to which the program itself has come: nothing waits for it."""
    place, head = place_ahead(moment), active()
    if place is not None and head is not None:
        head.note(place, loop_here())


def has_come(moment: int) -> bool:
    """Return whether the replay has come to this moment. If no other point lies between, it moves there now."""
    place, head = place_ahead(moment), active()
    if place is not None and head is not None and head.is_now(place):
        head.note(place, None)
        return True
    return place is None


def is_next(moment: int) -> bool:
    """Return whether this moment has come, for a program that polls: it has, if no other point of the tape lies
    between.
    """
    place, head = place_ahead(moment), active()
    if place is not None and head is not None and head.is_next(place):
        head.note(place, None)
        return True
    return place is None


def happened(kind: str, detail: Any = None) -> None:
    """Note that an event of that kind has happened in this lane."""
    if points.active() is not None:
        points.note(lanes.current.get(), kind, detail)
