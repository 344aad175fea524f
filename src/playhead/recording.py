"""Start and end a recording: `with playhead.record(…) as run:` and `@playhead.record`.

Knows settings, the store and how a run begins; not what is put on the tape while it lasts.
"""

from __future__ import annotations

import atexit
import dataclasses
import inspect
import os
import platform
import sys
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Mapping, TypeVar, overload

from playhead import clock, config, deck, events, lane_hooks, runs, where
from playhead._version import __version__
from playhead.errors import PlayheadError
from playhead.events import Level
from playhead.later import Later
from playhead.project import commit_of, project_of
from playhead.recorder import Recorder
from playhead.redact import Redactor
from playhead.runs import NO_RUN, NoRun, Run
from playhead.tape import store as stores
from playhead.tape.manifest import Manifest, read_manifest, write_manifest
from playhead.tape.resume import find_resumable, next_seq_of
from playhead.values import safe_str

if TYPE_CHECKING:
    from playhead.tape import single
else:
    single = Later("playhead.tape.single")

F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the caller of `record` asked for; None: whatever is configured."""

    name: str | None = None
    tags: Mapping[str, str] | None = None
    level: Level | None = None
    store: str | os.PathLike[str] | None = None
    run_id: str | None = None
    resume: bool | str = False
    force: bool = False
    redact: bool | None = None
    enabled: bool | None = None
    intercept: bool = False
    # What is recorded where that is not this process; and further members of `run.start`.
    command: tuple[str, ...] | None = None
    facts: Mapping[str, Any] | None = None


@overload
def record(function: F, /) -> F: ...
@overload
def record(
    *,
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    level: Level | None = None,
    store: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    resume: bool | str = False,
    force: bool = False,
    redact: bool | None = None,
    enabled: bool | None = None,
    intercept: bool = False,
) -> Recording: ...
def record(function: Callable[..., Any] | None = None, /, **wish: Any) -> Any:
    """Record what happens inside: `with playhead.record(name="nightly") as run:` (or `async with`),
    or each call of a function: `@playhead.record` / `@playhead.record(name=…)`.

    `resume` appends to an earlier run of that `run_id` or `name`; `force` moves it aside first;
    `intercept` hooks HTTP clients, subprocesses, tools and the clock as `playhead record` does.
    Switched off by `enabled=False` or PLAYHEAD_RECORD=0; then it costs next to nothing.
    """
    recording = Recording(Wish(**wish))
    return recording if function is None else recording(function)


class Recording:
    """A recording that can be entered, or put on a function. Never raises because of recording."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._open: list[tuple[Run | NoRun, Any]] = []

    def __enter__(self) -> Run | NoRun:
        started = begin(self._wish, at=where.fragment(where.asker(2)))
        token = runs.push(started) if isinstance(started, Run) else None
        self._open.append((started, token))
        return started

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        started, token = self._open.pop()
        if isinstance(started, Run):
            runs.pull(started, token)
            finish(started, error)

    async def __aenter__(self) -> Run | NoRun:
        return self.__enter__()

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)

    def __call__(self, function: F) -> F:
        name = self._wish.name or getattr(function, "__name__", None)
        wish = dataclasses.replace(self._wish, name=name)
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def recorded_async(*args: Any, **kwargs: Any) -> Any:
                async with Recording(wish):
                    return await function(*args, **kwargs)

            return recorded_async  # type: ignore[return-value]  # same signature by construction

        @wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with Recording(wish):
                return function(*args, **kwargs)

        return recorded  # type: ignore[return-value]  # same signature by construction


def begin(wish: Wish, *, at: str) -> Run | NoRun:
    """Open a run, or the no-op where recording is off or cannot be. Says why once, never raises."""
    outer = runs.current()
    if wish.enabled is False:
        return NO_RUN
    if isinstance(outer, Run) and wish.run_id is None and wish.store is None:
        return Run(outer.recorder, outer.manifest, owner=False)  # joined: it is one run
    try:
        settings = config.load()
        if wish.enabled is None and settings.record is False:
            return NO_RUN
        return open_run(wish, settings, at)
    except (PlayheadError, OSError) as error:
        _say(f"nothing is recorded: {safe_str(error)} The program goes on unharmed.")
        return NO_RUN


def finish(started: Run, error: BaseException | None) -> None:
    if not started.owned:
        return
    open_deck = deck.active()
    if open_deck is not None and open_deck.recorder is started.recorder:
        if started in _intercepting:
            _intercept_stop(open_deck)
        deck.deactivate(open_deck)
    _intercepting.discard(started)
    started.end(error)
    write_session(started, os.environ.get("PLAYHEAD_RECORD_SESSION"))
    _ending.discard(started)


def write_session(started: Run, target: str | os.PathLike[str] | None) -> None:
    """The run as one file beside its folder, for programs that carry their own recordings."""
    if not target:
        return
    try:
        single.pack(started.path, Path(target))
    except (PlayheadError, OSError) as error:
        _say(f"{target} could not be written ({safe_str(error)}); the tape is in {started.path}.")


def open_run(wish: Wish, settings: config.Settings, at: str) -> Run:
    """Open a run, come what may: PlayheadError and OSError are the caller's."""
    home = stores.open_store(Path(wish.store).expanduser().absolute() if wish.store else settings.home)
    now = clock.wall_ns()
    earlier = find_resumable(home, run_id=wish.run_id, name=wish.name, resume=wish.resume, force=wish.force)
    if earlier is not None and wish.force:
        stores.move_aside(earlier, now)
        earlier = None
    manifest = _manifest(wish, settings, now)
    if earlier is not None:
        old = read_manifest(earlier)
        manifest = dataclasses.replace(
            old, status="running", pid=manifest.pid, birth=manifest.birth, host=manifest.host,
            generation=old.generation + 1, ended_at=None, duration_s=None, error=None,
        )  # fmt: skip
        path = earlier
    else:
        run_id, path = _fresh(home, wish.run_id, now)
        manifest = dataclasses.replace(manifest, run=run_id, name=manifest.name or run_id)
    redactor = _redactor(wish, settings, home)
    manifest = dataclasses.replace(manifest, redacted=redactor is not None)
    recorder = Recorder(
        run=path, run_id=manifest.run, who=manifest.name, level=manifest.level, redactor=redactor,
        first_seq=next_seq_of(path) if earlier is not None else 0, generation=manifest.generation,
    )  # fmt: skip
    if redactor is not None:
        manifest = _redacted(manifest, redactor)
    write_manifest(path, manifest)
    started = Run(recorder, manifest)
    introduction = _introduction(manifest, resumed=earlier is not None)
    recorder.add(events.RUN_START, {**introduction, **(wish.facts or {})}, at)
    lane_hooks.install()
    _ending.add(started)
    if wish.intercept:
        _intercepting.add(started)
        _intercept_start(recorder)
    elif deck.active() is None:
        deck.activate(deck.Deck(recorder))  # for what the user declares: tools, watched stores
    return started


def _fresh(home: Path, run_id: str | None, now: int) -> tuple[str, Path]:
    """The id that was asked for; where it is taken, the next free one: nothing is overwritten."""
    if run_id is None:
        return stores.new_run(home, None, now)
    for again in range(1, 10_000):
        wanted = run_id if again == 1 else f"{run_id}-{again}"
        try:
            made = stores.new_run(home, wanted, now)
        except FileExistsError:
            continue
        if again > 1:
            _say(f"{run_id} exists already; recording as {wanted}. Append with resume, replace with force.")
        return made
    raise FileExistsError(f"{run_id} and 10,000 more are taken")


def _manifest(wish: Wish, settings: config.Settings, now: int) -> Manifest:
    cwd = Path(os.getcwd())
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


def _own_command() -> list[str]:
    return [sys.executable or "python", *(str(word) for word in getattr(sys, "orig_argv", sys.argv)[1:])]


def _redacted(manifest: Manifest, redactor: Redactor) -> Manifest:
    command = [redactor.clean_text(word) for word in manifest.command]
    return dataclasses.replace(manifest, command=command, tags=dict(redactor.clean(dict(manifest.tags))))


def _redactor(wish: Wish, settings: config.Settings, home: Path) -> Redactor | None:
    wanted = settings.redact if wish.redact is None else wish.redact
    if not wanted:
        return None
    return Redactor(
        key=stores.redaction_key(home),
        variables=dict(os.environ),
        patterns=settings.redact_patterns,
        names=settings.redact_names,
    )


def _introduction(manifest: Manifest, *, resumed: bool) -> dict[str, Any]:
    kept = ("run", "name", "tags", "level", "command", "cwd", "project", "git_commit", "playhead", "redacted")
    data: dict[str, Any] = {name: getattr(manifest, name) for name in kept}
    return {**data, "resumed": resumed}


def _intercept_start(recorder: Recorder) -> None:
    from playhead.inject import rules, session  # optional part: a process that only emits never loads it

    rules.post(recorder)
    session.start(recorder)


def _intercept_stop(open_deck: deck.Deck) -> None:
    from playhead.inject import rules, session

    session.stop(open_deck)
    rules.withdraw(open_deck.recorder.run)


_ending: set[Run] = set()
_intercepting: set[Run] = set()


def _end_all() -> None:
    """A run that nobody ended (a tap's own, a program that left by sys.exit) ends with its process."""
    for left in list(_ending):
        if left.recorder.run.exists():
            left.end()


atexit.register(_end_all)


def _say(message: str) -> None:
    try:
        sys.stderr.write(f"playhead: {message}\n")
    except (OSError, ValueError, AttributeError):
        return  # no stderr, or a closed one: nobody is listening
