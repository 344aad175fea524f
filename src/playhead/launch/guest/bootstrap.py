"""Record one process of a run from its first line to its last. Knows tickets, the segment and how a Python process
ends; does not know who started it.

Called by `site/sitecustomize.py` before any code of the program. Every Python of the run pays for the work done
here, so everything that can be done later is done later: docs/design/004-injection.md has the measurements.
"""

from __future__ import annotations

import atexit
import os
import sys

from playhead.errors import TapeNotReplayable
from playhead.hooks.process.children import set_standing
from playhead.hooks.replacements import Builtin
from playhead.host import own_listeners
from playhead.host.importing import when_imported
from playhead.host.interrupts import uncaught
from playhead.host.later import Later
from playhead.launch.guest import hooking as session
from playhead.launch.guest import rules, variables
from playhead.launch.guest.printed import Tee
from playhead.recording import ambient, deck, lanes, order_slot, points, where
from playhead.recording.deck import Mode
from playhead.recording.lanes import Lane
from playhead.recording.recorder import Recorder
from playhead.tape.store import PLAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, NoReturn

    from playhead.recording.ambient import Source
    from playhead.replay import answered_connections
    from playhead.replay import begin as replay
    from playhead.tape import manifest
else:
    replay = Later("playhead.replay.begin")  # a recorded program never loads it
    manifest = Later("playhead.tape.manifest")
    answered_connections = Later("playhead.replay.answered_connections")


# The argument with which `multiprocessing` starts a process that runs the program's own code.
_WORKER = "--multiprocessing-fork"


def begin() -> None:
    """Join the run that this process was started in, if there is one and it is still in progress."""
    ticket = variables.read(os.environ)
    if ticket is None:
        return
    is_replay = os.path.exists(os.path.join(ticket.run, PLAN))
    try:
        _begin(ticket, is_replay=is_replay)
    except Exception as error:
        if not is_replay:
            raise
        # Replay fails closed: a program that cannot be replayed from its tape must not run against the real world.
        os.write(2, f"playhead: this run cannot be replayed: {error}\n".encode("utf-8", "replace"))
        os._exit(4)


def _begin(ticket: variables.Ticket, *, is_replay: bool) -> None:
    variables.hide(os.environ, ticket)
    # Processes that are started before the hooks are in place are not part of the run, so they must not find it.
    os.unsetenv(variables.RUN)
    # The default of every context, so that threads started without our hooks are in this lane as well.
    lanes.MAIN.name = ticket.lane
    recorder = rules.join(ticket.run, ticket.parent or None, os.environ)
    if recorder is None:
        if is_replay:
            raise TapeNotReplayable(f"the replay in {ticket.run} has ended")
        return  # a daemon of a run that has ended: its tape is closed
    mode, source = _world(recorder) if is_replay else (None, None)
    where.OWNERS.include_runners()
    own_listeners.is_whole_program = True
    session.start(
        recorder,
        mode,
        terminals=ticket.terminals,
        seed=ticket.seed,
        source=source,
        detours=ticket.detours,
        shims=ticket.shims,
        stdin=ticket.stdin,
        inner=ticket.inner and not ticket.rerun,
    )
    _end_with(recorder, Tee(recorder, ticket.terminals), mode if _has_neighbours(ticket) else None)
    _branch_lanes(recorder)
    if _has_neighbours(ticket):
        order_slot.share_output(recorder)
    when_imported("playhead.recording.runs", lambda runs: _join(runs, recorder))
    stay(
        ticket._replace(
            parent=f"{recorder.segment}:0",
            lane=f"{ticket.lane}/~",
            restore=None,
            inner=True,
            rerun=False,
        )
    )


def _has_neighbours(ticket: variables.Ticket) -> bool:
    """Return whether other processes of the program may print while this one does: it was started by `multiprocessing`,
    or by a script. A replay does not run the processes of a call.
    """
    if ticket.inner or ticket.lane.endswith("/~"):
        return _WORKER in sys.orig_argv
    launcher = ticket.parent.partition(":")[0]
    return launcher != str(os.getppid())


def stay(ticket: variables.Ticket) -> None:
    """Set the C environment, which children that are started without any hook inherit: this process is their parent
    on the tape.
    """

    def standing() -> dict[str, str]:
        return variables.standing(os.environ, ticket)

    for name, value in standing().items():
        os.putenv(name, value)
    set_standing(standing)


def _world(recorder: Recorder) -> tuple[Mode | None, Source | None]:
    """Return the source of answers: the tape that the run's plan names."""
    return replay.begin_replay(recorder.run, recorder)


def _branch_lanes(recorder: Recorder) -> None:
    """Give each forked process its own lane. Forks are counted separately from tasks and threads: pools fork when no
    worker is idle, which is a race, and must not shift the numbers of the others.
    """

    def number() -> None:
        global _forks  # noqa: PLW0603  one count per process
        _forks += 1
        order_slot.share_output(recorder)

    def branch() -> None:
        made = Lane(f"{lanes.current.get().name}/f{_forks}")
        lanes.MAIN.name = made.name
        lanes.current.set(made)

    os.register_at_fork(before=number, after_in_child=branch)


_forks = 0


def _join(runs: ModuleType, recorder: Recorder) -> None:
    """Make `playhead.current()` and `playhead.record()` in the program's own code return this run."""
    runs.push(runs.Run(recorder, manifest.read_manifest(recorder.run), owner=False))


def _end_with(recorder: Recorder, tee: Tee, mode: Any) -> None:
    """Close the segment when the process ends. A killed process leaves it open, which shows that it was killed.
    `mode`: in a replay of a process of a script.
    """

    def end() -> None:
        _come_to_the_end()
        _print_the_rest()
        if order_slot.is_kept() and (recording := getattr(mode, "recording", None)) is not None:
            answered_connections.await_servers(recording, recorder.folder)
        tee.close()
        recorder.say_last_words()
        _leave(recorder, tee)

    # Registered first, so it runs last: output of the program's own exit handlers is still recorded.
    atexit.register(end)
    leave = os._exit

    def _exit(status: int) -> NoReturn:
        # Children of multiprocessing and of fork exit here, without atexit handlers.
        _leave(recorder, tee)
        leave(status)

    os._exit = _wrapped(Builtin(_exit), leave)


def _come_to_the_end() -> None:
    """Let the daemon threads of a replay come as far as they had come when the recorded program ended. litellm, for
    example, fetches its price list in such a thread, and tries three times.
    """
    if lanes.have_threads() and order_slot.is_kept():
        order_slot.wait_for(points.ENDED)
        order_slot.happened(points.ENDED)


def _print_the_rest() -> None:
    """Write the text that is still buffered, at its place between the texts of other processes."""
    if order_slot.prints is not None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # noqa: BLE001, S112  a program may close its streams or replace them
                continue


def _leave(recorder: Recorder, tee: Tee) -> None:
    if type(uncaught()) is KeyboardInterrupt:
        points.note(lanes.MAIN, points.INTERRUPT)
    if (open_deck := deck.active()) is not None and open_deck.recorder is recorder:
        deck.deactivate(open_deck)
    if (source := ambient.source()) is not None:
        ambient.end(source)
    points.end()
    tee.undo()
    error = uncaught()
    recorder.close(**({} if error is None else {"error": error}))
    if type(error) is KeyboardInterrupt:
        _stay_interrupted()


def _stay_interrupted() -> None:
    """Make Python exit as if Ctrl-C had killed it. Python does so unless source text was evaluated after the
    interrupt: named tuples evaluate text, and modules that define some may have been loaded to report what
    happened.
    """
    try:
        exec("raise KeyboardInterrupt", {})  # noqa: S102  Python checks how such a text ended
    except KeyboardInterrupt:
        return


def _wrapped(made: Any, original: Any) -> Any:
    made.__name__ = made.__qualname__ = original.__name__
    made.__doc__, made.__module__ = original.__doc__, original.__module__
    return made
