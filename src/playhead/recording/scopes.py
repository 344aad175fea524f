"""Choose the deck of a call: the deck of the process, or the deck of the run that a thread or a task opened.

Knows lanes, and the process-wide slots of clock, entropy and order; does not know what a deck does with a call. Import
these names from `playhead.recording.deck`.
"""

from __future__ import annotations

import os

from playhead.recording import ambient, lanes, points

TYPE_CHECKING = False
if TYPE_CHECKING:
    from playhead.recording.deck import Deck
    from playhead.recording.recorder import Recorder

# The deck of the process: of a recorded or replayed command, or of a run that a program opened for the whole process.
# It gets every call that belongs to no other run.
_process: Deck | None = None
# The decks of runs that threads and tasks opened, by recorder. Each deck is only for the code that this thread or task
# started.
_scoped: dict[Recorder, Deck] = {}


def active() -> Deck | None:
    """Return the deck of the run that the code running now belongs to. None if its calls are neither recorded nor
    replayed: hooks then pass through.
    """
    found = declared() if _scoped else _process
    return found if found is not None and found.intercepts else None


def declared() -> Deck | None:
    """Return the same for the tools and stores that a program declares itself: these need no hooks."""
    scope = _scope_of(lanes.current.get()) if _scoped else None
    return _process if scope is None else scope


def _scope_of(lane: lanes.Lane) -> Deck | None:
    """Return the deck of the run that this lane belongs to; None: the deck of the process."""
    scope = lane.scope
    # A replay answers for the whole process: a call that escaped it would be performed for real.
    if scope is None or scope.recorder not in _scoped or is_replay():
        return None
    return scope


def is_replay() -> bool:
    """Return whether this process is replayed."""
    return _process is not None and _process.mode is not None


def is_open(deck: Deck) -> bool:
    """Return whether the run of this deck is still open."""
    return deck is _process or deck.recorder in _scoped


def all_intercepting() -> list[Deck]:
    """Return the decks of all runs of this process that hooks write to."""
    found = [*([] if _process is None else [_process]), *list(_scoped.values())]
    return [deck for deck in found if deck.intercepts]


def of_process() -> Deck | None:
    """Return the deck for code that belongs to the run of the process."""
    return _process


def activate(deck: Deck) -> None:
    """Make it the deck of the process."""
    global _process  # noqa: PLW0603  (one a process)
    _process = deck


def deactivate(deck: Deck) -> None:
    global _process  # noqa: PLW0603  (one a process)
    if _process is deck:
        _process = None


class _Scopes:
    """Finds the source and the log of the run that a lane or a recorder belongs to."""

    def log_of_lane(self, lane: lanes.Lane | None) -> points.PointLog | None:
        scope = _scope_of(lane or lanes.current.get())
        return points.of_process() if scope is None else scope.log

    def log_of(self, recorder: Recorder | None) -> points.PointLog | None:
        scope = None if recorder is None else _scoped.get(recorder)
        return points.of_process() if scope is None else scope.log

    def source(self) -> ambient.Source | None:
        scope = _scope_of(lanes.current.get())
        return ambient.of_process() if scope is None else scope.source


_scopes = _Scopes()


def open_scope(deck: Deck) -> None:
    """Open a run beside others. The lanes whose `scope` is this deck belong to it, and everything that starts from
    them.
    """
    _scoped[deck.recorder] = deck
    ambient.scope(_scopes.source)
    points.scope(_scopes)


def close_scope(deck: Deck) -> None:
    if deck.source is not None:
        deck.source.flush()
    if deck.log is not None:
        deck.log.flush()
    _scoped.pop(deck.recorder, None)
    if not _scoped:
        ambient.scope(None)
        points.scope(None)


def _forked() -> None:
    """Renew the locks in a forked child: a lock that another thread held at the fork would never be released here. The
    parent writes the data that waits.
    """
    if _process is not None:
        _process.forked()
    for deck in _scoped.values():
        deck.forked()
        if deck.source is not None:
            deck.source.start_anew()
        if deck.log is not None:
            deck.log.start_anew()


os.register_at_fork(after_in_child=_forked)
