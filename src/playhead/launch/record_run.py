"""Start and end a recording: `with playhead.record(…) as run:` and `@playhead.record`.

Knows which code asks for a run, what is hooked for it and when it ends; `opening` begins it.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from playhead import config
from playhead.encoding.values import safe_str
from playhead.errors import PlayheadError
from playhead.events import Level
from playhead.hooks.order import lane_hooks
from playhead.host.interrupts import is_interrupt, uncaught
from playhead.host.later import Later
from playhead.host.stderr import say
from playhead.launch import opening
from playhead.launch.environment import kept
from playhead.launch.opening import Wish
from playhead.recording import deck, lanes, runs, turns, where
from playhead.recording.around import around, place_of
from playhead.recording.deck import Deck
from playhead.recording.runs import NO_RUN, NoRun, Run
from playhead.tape.annotations import annotate

if TYPE_CHECKING:
    from playhead.launch.guest import hooking, rules
    from playhead.tape import origin
    from playhead.tape import single_file as single
else:
    # A program that only emits events never loads the hooks.
    hooking = Later("playhead.launch.guest.hooking")
    rules = Later("playhead.launch.guest.rules")
    origin = Later("playhead.tape.origin")
    single = Later("playhead.tape.single_file")

__all__ = ["Opened", "Recording", "Wish", "begin", "finish", "open_run", "record", "write_session"]

F = TypeVar("F", bound=Callable[..., Any])


@overload
def record(function: F, /) -> F: ...
@overload
def record(
    *,
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    details: Mapping[str, Any] | None = None,
    level: Level | None = None,
    store: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    resume: bool | str = False,
    force: bool = False,
    redact: bool | None = None,
    enabled: bool | None = None,
    intercept: bool = False,
) -> Recording: ...
def record(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    details: Mapping[str, Any] | None = None,
    level: Level | None = None,
    store: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    resume: bool | str = False,
    force: bool = False,
    redact: bool | None = None,
    enabled: bool | None = None,
    intercept: bool = False,
) -> Any:
    """Record a block of code, or each call of a function.

        with playhead.record(name="nightly", intercept=True) as run:  # or `async with`
            run.emit("plan:made", {"steps": 3})

        @playhead.record
        def answer(question): ...

    Recording never raises: if a run cannot be written, one line on stderr says why, and the block runs.

    Args:
        name: Name of the run in lists. By default its id, or the function's name.
        tags: Labels to find the run by, as `{"team": "search"}`.
        details: Data about the start of the run, stored in the manifest: `{"config": …, "completed": […]}`.
        level: `minimal` (timing and status), `standard` (and hashes) or `full` (can be replayed).
        store: The folder that runs are kept in. By default the user's own store.
        run_id: An id of your own. If it is taken, `-2` is appended.
        resume: Append to the earlier run with this `run_id` or `name`.
        force: Move that earlier run aside first; nothing is deleted.
        redact: Remove secrets before anything is written. On by default.
        enabled: False: record nothing, at next to no cost. None: as PLAYHEAD_RECORD says.
        intercept: Record HTTP clients, subprocesses, tools and the clock, as `playhead record` does.
    """
    wish = Wish(
        name=name,
        tags=tags,
        details=details,
        level=level,
        store=store,
        run_id=run_id,
        resume=resume,
        force=force,
        redact=redact,
        enabled=enabled,
        intercept=intercept,
    )
    recording = Recording(wish)
    return recording if function is None else recording(function)


class Recording:
    """A recording for a `with` block or a function. Problems with recording never raise."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._open: list[Opened] = []

    def __enter__(self) -> Run | NoRun:
        opened = Opened(self._wish, where.asked(2))
        opened.enter()
        self._open.append(opened)
        return opened.run

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Tasks and threads may share one Recording: each of them leaves the run that it entered.
        here = runs.here()
        mine = next((one for one in reversed(self._open) if one.run is here), self._open[-1])
        self._open.remove(mine)
        mine.leave()
        mine.end(error)

    async def __aenter__(self) -> Run | NoRun:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __call__(self, function: F) -> F:
        """Decorate a function: each call is a run of its own, or a part of the run around it."""
        name = self._wish.name or getattr(function, "__name__", None)
        wish = self._wish._replace(name=name)
        at = place_of(function)
        return around(function, lambda *_: Opened(wish, at))


class Opened:
    """A run that was opened or joined; the code that opened it ends it."""

    def __init__(self, wish: Wish, at: str) -> None:
        self.run = begin(wish, at=at)
        self._token: Any = None
        self._outside: list[Any] = []

    def enter(self) -> None:
        if not isinstance(self.run, Run):
            return
        scope = _decks.get(self.run)
        is_scoped = not self.run.owned or scope is not deck.of_process()
        if scope is not None and is_scoped:
            # A separate run begins in its own lane, outside of every turn and call.
            self._outside = lanes.unpack(
                [
                    (lanes.current, lanes.Lane(lanes.root_here(), scope)),
                    (lanes.enclosing, None),
                    (lanes.inside, ()),
                    (lanes.printing, None),
                    (turns.here, None),
                ]
            )
        self._token = runs.push(self.run, is_scoped=is_scoped)

    def leave(self) -> None:
        if isinstance(self.run, Run):
            runs.pull(self.run, self._token)
            for token in reversed(self._outside):
                lanes.reset(token.var, token)

    def end(self, error: BaseException | None, value: Any = None) -> None:
        if isinstance(self.run, Run):
            finish(self.run, None if isinstance(error, GeneratorExit) else error)


def begin(wish: Wish, *, at: str) -> Run | NoRun:
    """Open a run. Return the no-op run if recording is off or impossible; print the reason once, and never raise."""
    if wish.enabled is False:
        return NO_RUN
    outer = runs.current()
    # A replay always joins: it must not create, move or change recordings.
    is_own = wish.run_id is not None or wish.store is not None
    if isinstance(outer, Run) and (deck.is_replay() or not is_own):
        _adopt(outer, wish)
        return Run(outer.recorder, outer.manifest, owner=False)  # the two are one run
    try:
        settings = config.load()
        if wish.enabled is None and settings.record is False:
            return NO_RUN
        return open_run(wish, settings, at)
    except Exception as error:  # a bad folder, setting or pattern must not fail the program
        if is_interrupt(error):
            raise
        say(f"nothing is recorded: {safe_str(error)} The program is not affected.")
        return NO_RUN


def open_run(wish: Wish, settings: config.Settings, at: str) -> Run:
    """Open a run. The caller handles PlayheadError and OSError."""
    if wish.session_file is None:
        wish = wish._replace(session_file=os.environ.get("PLAYHEAD_RECORD_SESSION"))
    if wish.intercept and (wish.level or settings.level) == "full":
        # `playhead replay` starts the program again, and its clients read base URLs and keys from the environment.
        variables = {"env": kept(os.environ), "home": os.environ.get("HOME")}
        wish = wish._replace(facts={**variables, **(wish.facts or {})})
    started = opening.open_run(wish, settings, at)
    try:
        lane_hooks.install()
        _attend(started, wish)
    except BaseException:
        started.recorder.close()
        raise
    _ending.add(started)
    return started


def _attend(started: Run, wish: Wish) -> None:
    """Route calls to the run's tape: the calls of the whole process, or only those that the run started."""
    is_for_process = wish.for_process or _is_of_program()
    is_scoped = deck.of_process() is not None or not is_for_process
    if wish.intercept:
        rules.post(started.recorder)
        start = hooking.start_scoped if is_scoped else hooking.start
        _decks[started] = start(started.recorder)
        return
    # For the tools and stores that the program declares.
    made = _decks[started] = deck.Deck(started.recorder)
    made.intercepts = False
    if is_scoped:
        deck.open_scope(made)
    else:
        deck.activate(made)


def _is_of_program() -> bool:
    """Return whether the current code is the top level of the program: its main thread, outside of event loops. A
    run that begins there also gets the calls of threads that were started earlier. A run that begins in a thread
    or a task, such as one of many in a server, gets only the calls that it started.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    loops: Any = sys.modules.get("asyncio.events")
    trio: Any = sys.modules.get("trio.lowlevel")
    if loops is not None and loops._get_running_loop() is not None:
        return False
    return not (hasattr(trio, "in_trio_run") and trio.in_trio_run())


def finish(started: Run, error: BaseException | None) -> None:
    if not started.owned or started.is_forked:
        started.end(error)
        return
    made = _decks.pop(started, None)
    if made is not None:
        is_scoped = made is not deck.of_process()
        if made.intercepts:
            (hooking.stop_scoped if is_scoped else hooking.stop)(made)
            rules.withdraw(started.path)
        elif is_scoped:
            deck.close_scope(made)
        else:
            deck.deactivate(made)
    started.end(error)
    write_session(started, os.environ.get("PLAYHEAD_RECORD_SESSION"))
    _ending.discard(started)


def write_session(started: Run, target: str | os.PathLike[str] | None) -> None:
    """Write the run as one file beside its folder, for programs that carry their own recordings."""
    if not target:
        return
    try:
        single.pack(started.path, Path(target))
        origin.remember_own_file(Path(target))
    except (PlayheadError, OSError) as error:
        say(f"{target} could not be written ({safe_str(error)}); the tape is in {started.path}.")


_ending: set[Run] = set()
# The deck of each run, through which its calls reach it.
_decks: dict[Run, Deck] = {}


def _end_all() -> None:
    """End runs that are still open when the process ends (the run of a tap, or of a program that left by sys.exit),
    with the status of the process.
    """
    for left in list(_ending):
        if left.recorder.run.exists():
            finish(left, uncaught())


def record_process() -> None:
    """Record this program from here to its end: PLAYHEAD_RECORD=1."""
    wish = Wish(fallback_name=_program(), intercept=True, for_process=True)
    with _starting:
        if isinstance(runs.current(), Run) or deck.is_replay():
            return
        started = begin(wish, at=where.asked(3))
        if isinstance(started, Run):
            runs.push_process(started)
            _by_variable.append(started)


def _program() -> str | None:
    """Return the script or module that Python runs, as `playhead record` names it. None: the code has no name."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None:  # python -m
        return str(spec.name).removesuffix(".__main__")
    first = str((getattr(sys, "argv", None) or [""])[0])
    return None if first in ("", "-", "-c") else os.path.basename(first)


_starting = threading.Lock()
# The run that PLAYHEAD_RECORD=1 started.
_by_variable: list[Run] = []


def _adopt(started: Run, wish: Wish) -> None:
    """Adopt the wish of a program that records itself, too. The run that it joins gets its details; the run that the
    variable started also gets its name and tags.
    """
    if wish.details and not deck.is_replay():
        try:
            annotate(started.path, details=opening.settled(wish.details, started.recorder.redactor))
        except OSError as error:
            say(f"the details of {started.id} could not be written ({safe_str(error)}).")
    if started.manifest not in [one.manifest for one in _by_variable]:
        return
    for one in _by_variable:
        one.call_it(wish.name, wish.tags or {})


atexit.register(_end_all)
