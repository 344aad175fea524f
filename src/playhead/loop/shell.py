"""A session for shell scripts: each step is a process of its own and continues where the previous one ended.
Knows what is kept between two steps; the steps themselves are those of any session.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead import clock, events
from playhead.encoding.values import safe_str
from playhead.errors import PlayheadError, UsageError
from playhead.events import LEVELS, Level, Ref, Status
from playhead.host.later import Later
from playhead.host.stderr import say
from playhead.loop import state as states
from playhead.loop.iteration import Iteration, RecordedLoop
from playhead.loop.session import Session, taken_up
from playhead.loop.stages import Stage, filled, parse_stages
from playhead.loop.state import State, let_go
from playhead.recording.encoder import DatedEvent, OpenSegment, append
from playhead.redact import Redactor
from playhead.tape import store as stores
from playhead.tape.shared_writer import SharedSegmentWriter

if TYPE_CHECKING:
    import dataclasses

    from playhead import config
    from playhead.launch import opening
    from playhead.loop import beginning
    from playhead.tape import manifest as manifests
else:
    # Only `init` and `end` need them: the steps in between must not wait for their import.
    dataclasses = Later("dataclasses")
    config = Later("playhead.config")
    opening = Later("playhead.launch.opening")
    beginning = Later("playhead.loop.beginning")
    manifests = Later("playhead.tape.manifest")

STATUSES: tuple[Status, ...] = ("ok", "failed", "interrupted")


def init(
    name: str,
    stages: Sequence[str],
    *,
    record: bool | None,
    level: Level | None,
    home: Path,
    resume: bool,
    force: bool,
) -> Session:
    """Start or continue a session; it is recorded under the same conditions as a loop."""
    chosen = parse_stages(stages) if stages else (Stage(name="work", most=0),)
    beginning.check_free(home, name, resume=resume, force=force)
    recorded = beginning.wants_record(home, name, asked=record, level=level, resume=resume)
    level = beginning.resumed_level(home, name, level, resume=resume)
    folder = states.folder_of(home, name)
    if force:
        states.set_aside(folder, clock.wall_ns())
    earlier = states.read_state(folder) if resume else None
    state = State(session=name, stages=chosen)
    if earlier is not None:
        state = states.resumed(earlier, chosen if stages else earlier.stages)
    state = state._replace(run=None, segment=None, closed=False)
    if recorded:
        state = _begun(state, home, level, resume=resume, force=force)
    session = Session(folder, state, recorded=None)
    session.save(session.state)
    return session


def start(name: str, home: Path, *, stage: str | None, context: Path | None) -> Iteration | None:
    """Begin the next iteration. None: there is none left."""
    session = _running(name, home, context=context)
    if stage is not None:
        session.state = states.at_stage(session.state, stage)
    if session.state.over:
        return None
    session.state = session.state._replace(status="running", open=None)
    return session.begin()


def prompt(name: str, home: Path, text: str, *, command: str) -> None:
    iteration = _current(name, home)
    iteration.prompt(text, command=command)
    iteration.session.save(iteration.session.state)


def response(name: str, home: Path, raw: bytes, *, exit_code: int | None) -> Iteration:
    """End the iteration with this response."""
    iteration = _current(name, home)
    iteration.response(raw)
    iteration.end(exit_code=exit_code)
    return iteration


def is_open(name: str, home: Path) -> bool:
    """Return whether the session has an iteration that has not ended."""
    state = states.read_state(states.folder_of(home, name))
    return state is not None and state.open is not None


def advance(
    name: str,
    home: Path,
    raw: bytes | None,
    *,
    exit_code: int | None,
    prompt: str | None,
    command: str,
    stage: str | None,
    context: Path | None,
) -> tuple[Iteration | None, Path | None]:
    """End the open iteration with its response, if there is one, and begin the next one with its prompt. Returns
    that iteration and the path of its prompt; None: the iteration failed, or there is no next one.
    """
    session = _running(name, home)
    if session.state.open is not None:
        ended = taken_up(session, session.state.open)
        if raw is not None:
            ended.response(raw)
        if ended.end(exit_code=exit_code).word == "error":
            say(f"session {name}: {ended.name} failed: {session.state.reason}")
            return None, None
    begun = start(name, home, stage=stage, context=context)
    if begun is None or prompt is None:
        return begun, None
    words = {"stage": begun.stage.name, "iteration": str(begun.number), "session": name}
    path = Path(filled(prompt, words)).expanduser().absolute()
    begun.prompt(path.read_text(encoding="utf-8", errors="replace"), command=command)
    begun.session.save(begun.session.state)
    return begun, path


def end(name: str, home: Path, status: Status | None) -> Status:
    """End the session, and close its run. Ending it again, as in a trap of a script, changes nothing."""
    session = take_up(name, home)
    state = session.state
    if state.closed:
        return (
            "ok"
            if state.status == "done"
            else "interrupted"
            if state.status == "interrupted"
            else "failed"
        )
    if state.open is not None:
        taken_up(session, state.open).interrupt()
        state = session.state
    outcome = status or ("failed" if state.status == "error" else "ok")
    after = {"ok": "done", "failed": "error", "interrupted": "interrupted"}[outcome]
    session.save(state._replace(status=after, closed=True))
    let_go(session.folder, None)
    if session.recorded is not None and state.segment is not None:
        try:
            _close(session.recorded, state.segment, outcome)
        except (PlayheadError, OSError) as error:
            say(f"the run of session {name} could not be closed: {safe_str(error)}")
    return outcome


def variables(iteration: Iteration) -> dict[str, str]:
    """The environment of the iteration's command."""
    found = iteration.environment()
    if iteration.folder is not None:
        found["PLAYHEAD_FOLDER"] = str(iteration.folder)
    return found


def exports(variables: Mapping[str, str]) -> str:
    """Return these variables as shell commands for `eval`."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def take_up(name: str, home: Path, *, context: Path | None = None) -> Session:
    """Return the session as the previous process left it."""
    folder = states.folder_of(home, name)
    state = states.read_state(folder)
    if state is None:
        raise UsageError(
            f"There is no session {name!r} here. Start it: playhead session init {name}."
        )
    session = Session(folder, state, recorded=None, context=context)
    session.recorded = _recorded(session, home)
    return session


def _running(name: str, home: Path, *, context: Path | None = None) -> Session:
    """Return the session for another step. Its run must still be open: events after the end would damage the tape."""
    session = take_up(name, home, context=context)
    if session.state.closed:
        raise UsageError(
            f"Session {name} has ended. Continue it: playhead session init {name} --resume. "
            f"Start over: playhead session init {name} --force."
        )
    return session


def _current(name: str, home: Path) -> Iteration:
    session = _running(name, home)
    if session.state.open is None:
        raise UsageError(
            f"Session {name} has no current iteration. Start one: "
            f"playhead session iteration-start {name}."
        )
    return taken_up(session, session.state.open)


def _recorded(session: Session, home: Path) -> RecordedLoop | None:
    state = session.state
    if state.run is None or state.segment is None:
        return None
    level: Level = next((one for one in LEVELS if one == state.level), "standard")
    run = stores.run_path(home, state.run)
    redactor = _redactor(home, state.redact)
    segment = OpenSegment(run, who=state.session, level=level, redactor=redactor)
    segment.write_to(SharedSegmentWriter(run, state.segment))

    def tell(kind: str, data: Any, parent: Ref | None, *, clean: bool = False) -> Ref | None:
        above = state.root if parent is None else parent
        try:
            return append(segment, DatedEvent(kind, data, parent=above, redacted=clean))
        except OSError as error:
            session.complain(error)
            return None

    return RecordedLoop(run=run, level=level, tell=tell, redactor=redactor, calls=True)


def _redactor(home: Path, rules: dict[str, Any] | None) -> Redactor | None:
    """The redactor as configured when the session started: reading the settings again would slow each step."""
    if rules is None:
        return None
    return Redactor(
        key=stores.redaction_key(home),
        variables=dict(os.environ),
        patterns=[str(one) for one in rules.get("patterns", ())],
        names=[str(one) for one in rules.get("names", ())],
        keep=[str(one) for one in rules.get("keep", ())],
    )


def _begun(state: State, home: Path, level: Level | None, *, resume: bool, force: bool) -> State:
    """Open the run of the session, and leave it open for the processes that follow."""
    settings = config.load()
    wish = beginning.wish_for(state.session, home, level, resume=resume, force=force)
    try:
        run = opening.open_run(wish, settings, '""')
        # The run is in progress as long as the script, our parent process, is alive.
        script = os.getppid()
        birth = clock.process_birth(script) or ""
        # No command: a replay would run these steps again, and they take no answers from a tape.
        manifest = dataclasses.replace(run.manifest, pid=script, birth=birth, command=[])
        manifests.write_manifest(run.path, manifest)
    except UsageError:
        raise
    except (PlayheadError, OSError) as error:
        say(f"session {state.session} is not recorded: {safe_str(error)} The session continues.")
        return state
    recorder = run.recorder
    secret = {
        "patterns": list(settings.redact_patterns),
        "names": list(settings.redact_names),
        "keep": list(settings.redact_keep),
    }
    return state._replace(
        redact=secret if settings.redact else None,
        run=run.id,
        level=recorder.level,
        segment=recorder.segment,
        root=recorder.root,
    )


def _close(recorded: RecordedLoop, segment: str, status: Status) -> None:
    found = manifests.read_manifest(recorded.run)
    now = clock.wall_ns()
    took = now - found.started_ns
    recorded.tell(events.RUN_END, {"status": status, "error": None, "took_ns": took}, None)
    writer = SharedSegmentWriter(recorded.run, segment)
    count, _, _ = writer.summary()
    recorded.tell(events.SEGMENT_END, {"events": count + 1, "lost": 0}, None)
    count, size, crc = writer.summary()
    summary = manifests.SegmentSummary(name=segment, events=count, bytes=size, crc=f"{crc:08x}")
    others = [one for one in found.segments if one.name != segment]
    manifests.write_manifest(
        recorded.run,
        dataclasses.replace(
            found,
            status=status,
            ended_at=clock.iso(now),
            duration_s=round(took / 1e9, 6),
            events=sum(one.events for one in others) + count,
            segments=[*others, summary],
        ),
    )
