"""Begin a run: its folder, its manifest, its first events; new, resumed, or replacing an earlier one. Knows
settings and the store; does not know what happens in the run.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead import clock, events
from playhead._version import __version__
from playhead.config import Settings
from playhead.encoding.values import freeze
from playhead.errors import PlayheadError, UsageError
from playhead.events import LEVELS, Level
from playhead.host.later import Later
from playhead.host.project import commit_of, project_of
from playhead.host.stderr import say
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.recording.runs import Run
from playhead.redact import Redactor
from playhead.redact.vault_notes import VaultNotes
from playhead.tape import store as stores
from playhead.tape.manifest import DETAILS, Manifest, read_manifest, status_of, write_manifest
from playhead.tape.origin import marked_as_own
from playhead.tape.resume import find_resumable, next_seq_of

if TYPE_CHECKING:
    from playhead.tape import reader, single_file
else:
    reader = Later("playhead.tape.reader")
    single_file = Later("playhead.tape.single_file")


class Wish(NamedTuple):
    """The options of `record`; None: as configured."""

    name: str | None = None
    # Used if neither the wish nor the settings name the run.
    fallback_name: str | None = None
    tags: Mapping[str, str] | None = None
    details: Mapping[str, Any] | None = None
    level: Level | None = None
    store: str | os.PathLike[str] | None = None
    run_id: str | None = None
    resume: bool | str = False
    force: bool = False
    redact: bool | None = None
    enabled: bool | None = None
    intercept: bool = False
    # The run belongs to the program, whichever thread or task opens it.
    for_process: bool = False
    # The recorded command, if it is not this process; and further members of `run.start`.
    command: tuple[str, ...] | None = None
    facts: Mapping[str, Any] | None = None
    # Keep the secrets of the run in a vault: see `tape.sealed.vault`.
    vault: bool = False
    # The run as one file, in addition to its folder.
    session_file: str | os.PathLike[str] | None = None


def open_run(wish: Wish, settings: Settings, at: str) -> Run:
    """Open a run with its folder, manifest and first events. The caller handles all errors."""
    if wish.level is not None and wish.level not in LEVELS:
        raise UsageError(f"The level is {wish.level!r}; expected one of {', '.join(LEVELS)}.")
    chosen = Path(wish.store).expanduser().absolute() if wish.store else settings.home
    home = stores.open_store(chosen)
    now = clock.wall_ns()
    earlier = _earlier(wish, home, now)
    manifest = _manifest(wish, settings, now)
    if earlier is not None:
        manifest = _resumed(earlier, manifest)
        path = earlier
    else:
        run_id, path = _fresh(home, wish.run_id, now)
        name = manifest.name or wish.fallback_name or run_id
        manifest = dataclasses.replace(manifest, run=run_id, name=name)
    redactor = _redactor(wish, settings, home)
    if redactor is not None and wish.vault:
        redactor.keeper = VaultNotes(str(path), redactor.key).keep
    _say_unredacted(wish, settings)
    manifest = _redacted(manifest, redactor)
    if wish.details:
        details = {**manifest.extra.get(DETAILS, {}), **settled(wish.details, redactor)}
        manifest = dataclasses.replace(manifest, extra={**manifest.extra, DETAILS: details})
    recorder = Recorder(
        run=path,
        run_id=manifest.run,
        who=manifest.name,
        level=manifest.level,
        redactor=redactor,
        first_seq=next_seq_of(path) if earlier is not None else 0,
        generation=manifest.generation,
    )
    try:
        if earlier is None:
            extra = marked_as_own(path, manifest)
            manifest = dataclasses.replace(manifest, extra={**manifest.extra, **extra})
        write_manifest(path, manifest)
        if earlier is not None:
            stores.announce(path)
        if wish.session_file:
            _announce(path, wish.session_file)
        started = Run(recorder, manifest)
        introduction = _introduction(manifest, resumed=earlier is not None)
        recorder.append(NewEvent(events.RUN_START, {**introduction, **(wish.facts or {})}, at))
    except BaseException:
        recorder.close()
        raise
    return started


def settled(details: Mapping[str, Any], redactor: Redactor | None) -> dict[str, Any]:
    """The details of a run as plain values, without secrets."""
    plain = freeze({str(name): value for name, value in details.items()})
    return dict(plain if redactor is None else redactor.clean(plain))


def _announce(path: Path, target: str | os.PathLike[str]) -> None:
    """Announce the single file of a run. Recording fails open: the folder exists even if the file cannot be written."""
    try:
        single_file.announce(path, Path(target))
    except OSError as error:
        say(f"{os.fspath(target)} could not be written ({error}); the tape is in {path}.")


def _earlier(wish: Wish, home: Path, now: int) -> Path | None:
    """Return the run to resume. `force`: move it aside instead, unless it is in progress."""
    earlier = find_resumable(
        home, run_id=wish.run_id, name=wish.name, resume=wish.resume, force=wish.force
    )
    if earlier is None or not wish.force:
        return earlier
    if _is_going_on(earlier):
        say(f"{earlier.name} is still being recorded, so it is not moved aside.")
    else:
        stores.move_aside(earlier, now)
    return None


def _is_going_on(run: Path) -> bool:
    try:
        return status_of(read_manifest(run)) == "running"
    except PlayheadError:
        return False


def _resumed(earlier: Path, manifest: Manifest) -> Manifest:
    """The manifest of a resumed run: the old one, with the new owner."""
    old = reader.Tape(earlier).manifest  # even if the manifest of that run is damaged
    return dataclasses.replace(
        old,
        status="running",
        pid=manifest.pid,
        birth=manifest.birth,
        host=manifest.host,
        tags={**old.tags, **manifest.tags},
        generation=old.generation + 1,
        ended_at=None,
        duration_s=None,
        exit_code=None,
        error=None,
    )


def _fresh(home: Path, run_id: str | None, now: int) -> tuple[str, Path]:
    """Return the requested id, or the next free one if it is taken: nothing is overwritten."""
    if run_id is None:
        return stores.new_run(home, None, now)
    for again in range(1, 10_000):
        wanted = run_id if again == 1 else f"{run_id}-{again}"
        try:
            made = stores.new_run(home, wanted, now)
        except FileExistsError:
            continue
        if again > 1:
            say(
                f"{run_id} exists already; recording as {wanted}. Append with resume, replace with force."
            )
        return made
    raise FileExistsError(f"{run_id} and the next 10,000 names are taken")


def _manifest(wish: Wish, settings: Settings, now: int) -> Manifest:
    cwd = _folder()
    project = project_of(cwd)
    return Manifest(
        run="",
        name=wish.name or settings.name or "",
        started_at=clock.iso(now),
        started_ns=now,
        level=wish.level or settings.level,
        command=list(wish.command or _own_command()),
        cwd=str(cwd),
        project=str(project),
        git_commit=commit_of(project),
        tags={**settings.tags, **{str(k): str(v) for k, v in (wish.tags or {}).items()}},
        host=clock.host(),
        pid=clock.pid(),
        birth=clock.process_birth(clock.pid()) or "",
        python=platform.python_version(),
        playhead=__version__,
    )


def _folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # the folder was deleted while the program ran in it
        return Path("/")


def _own_command() -> list[str]:
    return [
        sys.executable or "python",
        *(str(word) for word in getattr(sys, "orig_argv", sys.argv)[1:]),
    ]


def _redacted(manifest: Manifest, redactor: Redactor | None) -> Manifest:
    if redactor is None:
        return dataclasses.replace(manifest, redacted=False)
    return dataclasses.replace(
        manifest,
        redacted=True,
        name=redactor.clean_text(manifest.name),
        command=redactor.clean_argv(manifest.command),
        cwd=redactor.clean_text(manifest.cwd),
        project=redactor.clean_text(manifest.project),
        tags=dict(redactor.clean(dict(manifest.tags))),
    )


def _redactor(wish: Wish, settings: Settings, home: Path) -> Redactor | None:
    wanted = settings.redact if wish.redact is None else wish.redact
    if not wanted:
        return None
    return Redactor(
        key=stores.redaction_key(home),
        variables=dict(os.environ),
        patterns=settings.redact_patterns,
        names=settings.redact_names,
        keep=settings.redact_keep,
    )


def _say_unredacted(wish: Wish, settings: Settings) -> None:
    """Warn that a settings file keeps secrets on the tape: it may come from a cloned repository, and the user may
    not have read it.
    """
    if wish.redact is not None or settings.source is None:
        return
    if not settings.redact:
        say(f"redaction is OFF: {settings.source} says so. Secrets will be on the tape.")
    elif settings.redact_keep:
        kept = ", ".join(settings.redact_keep)[:120]
        say(f"{settings.source} keeps these values unredacted: {kept}.")


def _introduction(manifest: Manifest, *, resumed: bool) -> dict[str, Any]:
    kept = (
        "run",
        "name",
        "tags",
        "level",
        "command",
        "cwd",
        "project",
        "git_commit",
        "playhead",
        "redacted",
    )
    data: dict[str, Any] = {name: getattr(manifest, name) for name in kept}
    return {**data, "resumed": resumed}
