"""The handle of a run that is being recorded, for the user's code. Knows the recorder, turns and the manifest; does not
know how a run is configured (see `record`).
"""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, overload

from playhead import clock, events
from playhead.encoding.values import Frozen, freeze, safe_str
from playhead.events import Ref, Status
from playhead.recording import lanes, turns, where
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.recording.turns import Turn
from playhead.recording.where import fragment
from playhead.tape.manifest import Manifest, SegmentSummary, write_manifest
from playhead.tape.store import MANIFEST

F = TypeVar("F", bound=Callable[..., Any])


class Run:
    """A run that is being recorded, made by `playhead.record`. Its methods are safe to call from any thread or
    task, and never raise because of recording.
    """

    def __init__(self, recorder: Recorder, manifest: Manifest, *, owner: bool = True) -> None:
        self.recorder = recorder
        self.manifest = manifest
        # A run joined from inside another recording is ended by the code that began it.
        self._owner = owner
        self._pid = clock.pid()
        self._ending = threading.Lock()
        self._ended = False
        if owner:
            recorder.made_anew = self._restore

    @property
    def id(self) -> str:
        return self.manifest.run

    @property
    def owned(self) -> bool:
        """Return whether this handle began the run, and so ends it."""
        return self._owner

    @property
    def is_forked(self) -> bool:
        """Return whether this is a child of the process that began the run."""
        return clock.pid() != self._pid

    @property
    def path(self) -> Path:
        return self.recorder.run

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def lost(self) -> int:
        return self.recorder.lost

    def emit(
        self,
        kind: str,
        data: Any = None,
        *,
        who: str | None = None,
        why: str | None = None,
        cause: Ref | None = None,
    ) -> int | None:
        """Record an event of your own: `run.emit("plan:made", {"steps": 3})`.

        Args:
            kind: The event's kind, in your own words.
            data: The event's data; any value.
            who: The agent or component. By default the run's name.
            why: The reason, in words.
            cause: The event that led to it, by the number that `emit` returned.

        Returns:
            The event's number on the tape; None if it could not be written.
        """
        at = fragment(sys._getframe(1))
        return self.recorder.append(NewEvent(kind, data, at, None, cause, False, True, who, why))

    def turn(self, name: str, *, purpose: str | None = None, input: Any = None) -> Turn:  # noqa: A002
        """`with run.turn("respond") as turn:`, `async with`, or `@run.turn("respond")`."""
        return Turn(lambda: self.recorder, name, purpose=purpose, input=input)

    def seam(self, name: str, data: Any = None, *, at: str | None = None) -> None:
        """Record a checkpoint of the current turn; without a turn, an event of the run."""
        at = at or where.fragment(sys._getframe(1))
        turn = turns.current()
        if turn is not None:
            turn.seam(name, data, at=at)
        else:
            self.recorder.append(
                NewEvent(events.SEAM, {"turn": None, "name": name, "value": data}, at)
            )

    @property
    def is_open(self) -> bool:
        return not self.recorder.closed

    def end(
        self,
        error: BaseException | Frozen | None = None,
        *,
        status: Status | None = None,
        exit_code: int | None = None,
        pid: int | None = None,
    ) -> None:
        """Close the tape with status, error and counts. Idempotent. `record` calls it at the end of its block. `pid` is
        the process of a recorded command.
        """
        if not self._owner:
            return
        if self.is_forked:
            self.recorder.close()  # a forked child ends its own segment; its parent ends the run
            return
        with self._ending:
            if self._ended:
                return
            self._ended = True
        self.recorder.say_last_words()
        ended = clock.wall_ns()
        outcome = status or status_for(error)
        code = exit_code if exit_code is not None else exit_code_of(error)
        failure = None if error is None or outcome == "ok" else freeze(error)
        took = ended - self.manifest.started_ns
        data = {"status": outcome, "error": error if failure else None, "took_ns": took}
        if code is not None:
            data["exit_code"] = code
        if pid is not None:
            data["pid"] = pid
        self.recorder.append(NewEvent(events.RUN_END, data))
        self.recorder.close()
        self.recorder.forget_shared_secrets()
        self.manifest = dataclasses.replace(
            self.manifest,
            status=outcome,
            ended_at=clock.iso(ended),
            duration_s=round(took / 1e9, 6),
            exit_code=code,
            error=_short(failure, self.recorder),
            events=self.recorder.next_seq,
            lost=self.recorder.lost,
            segments=[*self.manifest.segments, self._segment()],
        )
        self._write_manifest()

    def call_it(self, name: str | None, tags: Mapping[str, str]) -> None:
        """Give the run another name, and more tags; they are on disk when it ends."""
        found = {**self.manifest.tags, **{str(key): str(value) for key, value in tags.items()}}
        self.manifest = dataclasses.replace(
            self.manifest, name=name or self.manifest.name, tags=found
        )

    def _segment(self) -> SegmentSummary:
        recorder = self.recorder
        return SegmentSummary(
            name=recorder.segment,
            events=recorder.events,
            bytes=recorder.bytes_written,
            crc=f"{recorder.checksum:08x}",
        )

    def _write_manifest(self) -> None:
        try:
            write_manifest(self.path, self.manifest)
        except OSError as problem:
            why = safe_str(problem)
            self.recorder.warn(f"the manifest of {self.path} could not be written ({why}).")

    def _restore(self) -> None:
        """Write the manifest again after the run's folder was deleted and created again."""
        if not (self.path / MANIFEST).exists():
            self._write_manifest()


def _short(failure: Any, recorder: Recorder) -> dict[str, Any] | None:
    """Return the error as a list of runs shows it: type and message, redacted."""
    if not isinstance(failure, dict):
        return None
    short = {"type": str(failure.get("$exception")), "message": failure.get("message")}
    return short if recorder.redactor is None else dict(recorder.redactor.clean(short))


def status_for(error: BaseException | Frozen | None) -> Status:
    """Return the status of a run from the exception that left its block."""
    if error is None or exit_code_of(error) == 0:
        return "ok"
    # A cancelled task; known by name, because asyncio costs 30 ms to import.
    stopped = isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError"
    return "interrupted" if stopped else "failed"


def exit_code_of(error: object) -> int | None:
    """Return the exit code that Python gives to a process that ends with this SystemExit; None for other exceptions."""
    if not isinstance(error, SystemExit):
        return None
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else 1


class NoRun:
    """The run of a program that is not recorded: the same methods, which do nothing."""

    id = ""
    name = ""
    lost = 0
    path: Path | None = None

    def emit(
        self,
        kind: str,
        data: Any = None,
        *,
        who: str | None = None,
        why: str | None = None,
        cause: Ref | None = None,
    ) -> None:
        """Do nothing; see `Run.emit`."""

    def turn(self, name: str, *, purpose: str | None = None, input: Any = None) -> Turn:  # noqa: A002
        """A turn that is not recorded; see `Run.turn`."""
        return Turn(lambda: None, name, purpose=purpose, input=input, recording=())

    def seam(self, name: str, data: Any = None, *, at: str | None = None) -> None:
        """Do nothing; see `Run.seam`."""

    def end(
        self,
        error: BaseException | Frozen | None = None,
        *,
        status: Status | None = None,
        exit_code: int | None = None,
        pid: int | None = None,
    ) -> None:
        """Do nothing; see `Run.end`."""


NO_RUN = NoRun()

_here: ContextVar[Run | None] = ContextVar("playhead_run", default=None)
lanes.carried.append(_here)
# Code whose context names no run belongs to the last open run that the program opened for the whole process.
_process: list[Run] = []


def current() -> Run | NoRun:
    """Return the run that the current code belongs to. If nothing is recorded, return a run whose methods do nothing.

    playhead.current().emit("cache:hit", {"key": key})
    """
    if not turns.open_runs:
        return NO_RUN
    here = _here.get()
    if here is None and not _process:
        return NO_RUN
    if here is not None and here.is_open:
        return here
    # A task may outlive the run that it was started in: it then belongs to the run of the process, if one is open.
    return next((run for run in reversed(_process) if run.is_open), NO_RUN)


def here() -> Run | None:
    """Return the run that was opened in this very context, joined runs included."""
    return _here.get()


def push(run: Run, *, is_scoped: bool = False) -> Any:
    """Make it the run of this context and, unless `is_scoped`, of contexts that name no run."""
    if not is_scoped:
        _process.append(run)
    turns.open_runs.append(run)
    return _here.set(run)


def push_process(run: Run) -> None:
    """Make it the run of every context that names no run; the run of this context stays."""
    _process.append(run)
    turns.open_runs.append(run)


def pull(run: Run, token: Any) -> None:
    for held in (_process, turns.open_runs):
        if run in held:
            held.remove(run)
    try:
        _here.reset(token)
    except ValueError:  # the block was left in another context, and its own context is gone
        _here.set(None)


@overload
def turn(function: F, /) -> F: ...
@overload
def turn(name: str, *, purpose: str | None = None, input: Any = None) -> Turn: ...
def turn(
    name: str | Callable[..., Any],
    *,
    purpose: str | None = None,
    input: Any = None,  # noqa: A002
) -> Any:
    """A unit of agent work in the current run, as a block or around each call of a function.

        with playhead.turn("respond", purpose="answer the user") as turn:
            turn.seam("analyse", {"intent": "refund"})

        @playhead.turn("respond")        # or @playhead.turn: then the function's name
        def respond(question): ...

    The turn is recorded whether it returns or raises, with the seams that were completed. As a decorator it
    records the arguments as its input, and the result.

    Args:
        name: What kind of work it is.
        purpose: Why it is done, in words.
        input: What it works on. A decorator's default: the arguments of the call.
    """
    if callable(name):
        called = getattr(name, "__name__", type(name).__name__)
        return Turn(_recorder, called, recording=turns.open_runs)(name)
    return Turn(_recorder, name, purpose=purpose, input=input, recording=turns.open_runs)


def seam(name: str, data: Any = None) -> None:
    """Mark a step of the current turn as completed, from any code that runs in it.

        playhead.seam("retrieve", {"documents": 7})

    Without a turn it belongs to the run; without a run nothing happens.

    Args:
        name: The step.
        data: What it produced.
    """
    if not turns.open_runs:
        return
    found = turns.current() or current()
    found.seam(name, data, at=where.fragment(sys._getframe(1)))


def retrieval(sources: Iterable[Any]) -> None:
    """Record the sources that were looked up for a prompt, from any code that runs in a turn.

        playhead.retrieval([{"id": "faq-12", "snippet": text, "score": 0.91},
                            {"id": "faq-40", "score": 0.2, "dropped": "score below 0.5"}])

    Without a turn they belong to the run; without a run nothing happens.

    Args:
        sources: Dicts or objects; `Turn.retrieval` lists their members.
    """
    if not turns.open_runs:
        return
    at = where.fragment(sys._getframe(1))
    turn, recorder = turns.current(), _recorder()
    if turn is not None:
        turn.retrieval(sources, at=at)
    elif recorder is not None:
        turns.record_retrieval(recorder, None, sources, at)


def _recorder() -> Recorder | None:
    found = current()
    return found.recorder if isinstance(found, Run) else None
