"""Install and uninstall the hooks of this process. Knows deck, lanes, boundaries and children; does not know how the
run began.
"""

from __future__ import annotations

import os

from playhead.hooks import registry
from playhead.hooks.input import input_slot
from playhead.hooks.order import lane_hooks
from playhead.hooks.process import flight as process_flight
from playhead.hooks.process.children import set_carrier
from playhead.host.later import Later
from playhead.host.lean import RLock
from playhead.launch.guest import children_env as children
from playhead.recording import ambient, chunks, deck, lanes, points
from playhead.recording.deck import Deck, Mode
from playhead.recording.recorder import Recorder
from playhead.workspace.watch.call_marks import marks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.hooks.state import written_files
    from playhead.launch.proxy.routes import Detour
    from playhead.replay import surroundings
else:
    written_files = Later("playhead.hooks.state.written_files")  # where a workspace is recorded
    surroundings = Later("playhead.replay.surroundings")  # a recorded program never loads it


def start(
    recorder: Recorder,
    mode: Mode | None = None,
    *,
    terminals: tuple[int, ...] = (),
    seed: str | None = None,
    source: ambient.Source | None = None,
    detours: Mapping[str, Detour] | None = None,
    shims: str | None = None,
    stdin: str | None = None,
    inner: bool = False,
) -> Deck:
    """Install the hooks: from here on every call that crosses a boundary goes through the deck, and children join
    the run.

    `source` supplies clock and entropy; without it, the real ones are used and recorded. `detours` lead children
    that cannot be hooked to the run's proxy, and `shims` record the programs that those children start. `stdin`
    identifies the run's stdin. `inner`: a call of another process started this one, and owns the file changes that
    it makes.
    """
    with _changing:
        # Lanes are counted from here: a second run in one process (a test suite) gets the same names as the first.
        lanes.MAIN.restart()
        made = Deck(recorder, mode)
        made.marks = marks_of(recorder.folder, inner=inner)
        deck.activate(made)
        if source is None and recorder.level == "full":
            source = ambient.TapingSource(recorder)
        if source is not None:
            # Before the hooks: those of entropy reseed generators that were seeded earlier.
            ambient.begin(source)
        if mode is None and recorder.level == "full":
            points.begin(points.PointLog(recorder, chunks.flush_soon))
        if mode is None and made.marks is not None and recorder.level == "full":
            written_files.begin(made.marks)
        if mode is not None:
            surroundings.enter(mode, source, is_hooked=_is_hooked, is_stand_in=_is_stand_in)
            registry.uninstall()  # a recording around this replay needs fewer hooks
        input_slot.begin(stdin)
        _hook(made)
        carriage = children.Carriage(
            recorder.folder,
            terminals=terminals,
            seed=seed,
            detours=detours,
            shims=shims,
            stdin=stdin,
            inner=inner,
        )
        set_carrier(carriage.carry)
    return made


def stop(made: Deck) -> None:
    """Uninstall the hooks: every library is as it was before. Lanes stay hooked: without a deck they cost nothing,
    and a run without interception may still use them.
    """
    with _changing:
        process_flight.leave_all(made.recorder)
        set_carrier(None)
        if (source := ambient.of_process()) is not None:
            ambient.end(source)
        points.end()
        if made.mode is not None:
            registry.uninstall()
            surroundings.leave()
        _unhook(made)
        deck.deactivate(made)


def start_scoped(recorder: Recorder) -> Deck:
    """Install the hooks for one of several runs in this process: its deck gets only the calls of its own lanes."""
    with _changing:
        made = Deck(recorder)
        if recorder.level == "full":
            made.source = ambient.TapingSource(recorder)
            made.log = points.PointLog(recorder, chunks.flush_soon)
        made.carrier = children.Carriage(recorder.folder).carry
        deck.open_scope(made)
        _hook(made)
    return made


def stop_scoped(made: Deck) -> None:
    with _changing:
        process_flight.leave_all(made.recorder)
        deck.close_scope(made)
        _unhook(made)


# Threads may begin and end runs at the same time. Re-entrant: a hook may import a module that begins a run.
_changing = RLock()
# The decks that need the hooks.
_users: list[Deck] = []


def _hook(made: Deck) -> None:
    _users.append(made)
    lane_hooks.install()
    registry.install(made)


def _unhook(made: Deck) -> None:
    if made in _users:
        _users.remove(made)
    if not _users:
        registry.uninstall()
    else:
        registry.install()  # a replay may have removed them


def _renew_lock() -> None:
    """Replace the lock in a forked child: a thread that does not exist here may have held it."""
    global _changing  # noqa: PLW0603  one lock per process
    _changing = RLock()


os.register_at_fork(after_in_child=_renew_lock)


def _is_hooked() -> bool:
    return bool(process_flight.within.get())


def _is_stand_in(pid: int) -> bool:
    flight = process_flight.by_pid.get(pid)
    return flight is not None and flight.player is not None
