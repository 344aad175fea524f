"""Start a session: new, resumed, or replacing an earlier one; recorded or not. Knows settings and the store;
does not know iterations.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from playhead import clock, config
from playhead.encoding.values import safe_str
from playhead.errors import PlayheadError, UsageError
from playhead.events import LEVELS, Level, Ref
from playhead.host.stderr import say
from playhead.launch import record_run as recording
from playhead.launch.opening import Wish
from playhead.loop import state as states
from playhead.loop.iteration import RecordedLoop
from playhead.loop.session import Session
from playhead.loop.stages import IterationFailed, Stage, parse_stages
from playhead.loop.state import State, hold, let_go
from playhead.recording import deck, runs
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.recording.runs import Run
from playhead.tape import store as stores
from playhead.tape.manifest import read_manifest

DEFAULT_LEVEL: Level = "standard"


def open_session(
    session: str,
    stages: Sequence[str | Stage],
    *,
    context: str | os.PathLike[str] | None = None,
    record: bool | None = None,
    level: Level | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    command: Sequence[str] | None = None,
) -> Session:
    """Open a session of that name. UsageError: it exists already, and neither `resume` nor `force` is set.

    It is recorded if `record` or PLAYHEAD_RECORD=1 says so, if `level` names a level, or if it resumes a recorded
    session. Inside of a recorded run it is a part of that run.
    """
    home = home_of(store)
    folder = states.folder_of(home, session)
    fresh = State(session=session, stages=parse_stages(stages))
    if is_replaying():
        return _made(folder, fresh, context, keeps_state=False)
    check_free(home, session, resume=resume, force=force)
    wanted = wants_record(home, session, asked=record, level=level, resume=resume)
    level = resumed_level(home, session, level, resume=resume)
    held = hold(folder)
    try:
        state = _state(home, folder, fresh, resume=resume, force=force)
        run = None
        if not isinstance(runs.current(), Run) and wanted:
            run = _opened(session, home, level, command, resume=resume, force=force)
        made = _made(folder, state, context, run=run, held=held)
    except BaseException:
        let_go(folder, held)
        raise
    made.save(made.state)
    return made


def _made(
    folder: Path,
    state: State,
    context: str | os.PathLike[str] | None,
    *,
    run: Run | None = None,
    held: int | None = None,
    keeps_state: bool = True,
) -> Session:
    """Make the session. `run` is its own run; without one, the session is a part of the run around it, if there is
    one.
    """
    around = runs.current()
    recorded = None
    if run is not None:
        # At `full` everything is hooked, as in a recorded program: the hooks record calls when they are made.
        recorded = _joined(run.recorder)._replace(calls=run.manifest.level != "full")
    elif isinstance(around, Run):
        recorded = _joined(around.recorder)
    if recorded is not None:
        state = state._replace(level=recorded.level, run=recorded.run.name)
    return Session(
        folder,
        state,
        recorded=recorded,
        context=None if context is None else Path(context).expanduser().absolute(),
        keeps_state=keeps_state,
        on_close=None if run is None else lambda one: _end(run, one),
        held=held,
    )


def home_of(store: str | os.PathLike[str] | None) -> Path:
    return Path(store).expanduser().absolute() if store is not None else config.load().home


def wants_record(
    home: Path, session: str, *, asked: bool | None, level: Level | None, resume: bool
) -> bool:
    """Return whether to record, which is off by default. `--record`, `--record-level` and PLAYHEAD_RECORD=1 switch
    it on; a resumed session is recorded if it was recorded before.
    """
    if asked is not None:
        return asked
    if "PLAYHEAD_RECORD" in os.environ:
        return config.load().record is True
    return level is not None or (resume and stores.run_path(home, session).exists())


def chosen_level(asked: Level | None) -> Level:
    level = asked or os.environ.get("PLAYHEAD_LEVEL") or DEFAULT_LEVEL
    for known in LEVELS:
        if level == known:
            return known
    raise UsageError(f"The level is {level!r}; expected one of {', '.join(LEVELS)}.")


def resumed_level(home: Path, session: str, asked: Level | None, *, resume: bool) -> Level | None:
    """Return the level to record at: a resumed session keeps its own. UsageError: the user chose another one."""
    path = stores.run_path(home, session)
    if not resume or not path.exists():
        return asked
    try:
        then = read_manifest(path).level
    except PlayheadError:
        return asked
    if asked is not None and then != asked:
        raise UsageError(
            f"Session {session!r} was recorded at level {then!r}, and a resumed session keeps its level. "
            f"Leave out --record-level {asked}, or start over with --force (which renames the old session)."
        )
    return then


def is_replaying() -> bool:
    """Return whether this process is served from a tape: then the state on disk belongs to another run."""
    active = deck.declared()
    return active is not None and active.mode is not None


def check_free(home: Path, session: str, *, resume: bool, force: bool) -> None:
    """Check that the name can be used. UsageError: it is taken and neither `resume` nor `force` is set, or the
    session is still in progress. A finished session whose run was pruned does not block its name.
    """
    if resume and force:
        raise UsageError("--resume continues and --force starts over: give only one of them.")
    if is_replaying() or isinstance(runs.current(), Run):
        return
    folder = states.folder_of(home, session)
    held = hold(folder)
    if held is not None:
        os.close(held)
    if resume or force:
        return
    earlier = states.read_state(folder)
    there = stores.run_path(home, session).exists()
    pruned = earlier is not None and earlier.run and not there and earlier.status == "done"
    if (earlier is not None and not pruned) or there:
        so_far = "" if earlier is None else f" ({earlier.total} iterations, {earlier.status})"
        raise UsageError(
            f"Session {session!r} exists already{so_far}. "
            "Continue with --resume, or start over with --force (which renames the old session)."
        )


def _state(home: Path, folder: Path, fresh: State, *, resume: bool, force: bool) -> State:
    try:
        stores.open_store(home)
        if force:
            states.set_aside(folder, clock.wall_ns())
    except (PlayheadError, OSError) as error:
        say(f"the progress of session {fresh.session} cannot be saved: {safe_str(error)}")
    return started_state(home, fresh.session, fresh.stages, resume=resume)


def started_state(home: Path, session: str, stages: tuple[Stage, ...], *, resume: bool) -> State:
    """Return the state with which a session starts or continues."""
    earlier = states.read_state(states.folder_of(home, session)) if resume else None
    return (
        State(session=session, stages=stages)
        if earlier is None
        else states.resumed(earlier, stages)
    )


def _joined(recorder: Recorder) -> RecordedLoop:
    def tell(kind: str, data: Any, parent: Ref | None, *, clean: bool = False) -> Ref | None:
        return recorder.append(NewEvent(kind, data, parent=parent, redacted=clean))

    return RecordedLoop(
        run=recorder.run,
        level=recorder.level,
        tell=tell,
        redactor=recorder.redactor,
        calls=False,
    )


def wish_for(
    session: str,
    home: Path,
    level: Level | None,
    *,
    resume: bool,
    force: bool,
    facts: Mapping[str, Any] | None = None,
) -> Wish:
    """Return the wish for the run of a session: its id is the session's name, so `resume` and `force` work as for
    runs.
    """
    return Wish(
        name=session,
        run_id=session,
        tags={"session": session},
        level=chosen_level(level),
        store=home,
        resume=resume,
        force=force,
        for_process=True,
        facts=facts,
    )


def _opened(
    session: str, home: Path, level: Level | None, command: Sequence[str] | None, *,
    resume: bool, force: bool,
) -> Run | None:  # fmt: skip
    wish = wish_for(session, home, level, resume=resume, force=force)
    if wish.level == "full":
        wish = wish._replace(intercept=True)
    elif command is not None:
        wish = wish._replace(command=tuple(command))
    try:
        run = recording.open_run(wish, config.load(), '""')
    except UsageError:
        raise
    except (PlayheadError, OSError) as error:
        say(f"session {session} is not recorded: {safe_str(error)} The session continues.")
        return None
    return run


def _end(run: Run, session: Session) -> None:
    """End the run in the same way as its session."""
    # An exception that the program raised, during an iteration or between two.
    error: BaseException | None = session.error
    if error is None and session.status == "error":
        error = IterationFailed(session.state.reason or "error")
    elif error is None and session.status != "done":
        error = KeyboardInterrupt()
    recording.finish(run, error)
