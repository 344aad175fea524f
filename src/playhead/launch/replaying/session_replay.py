"""Run the workers of a recorded session again in a test, and compare them with the tape.

Subprocesses, agent turns and tools are answered from the tape, the clock is that of the tape, and the store is
what `run_worker` builds from `worker.snapshot`. Knows recordings and the replay mode; not file formats.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from playhead.encoding.values import safe_str, thaw
from playhead.errors import Divergence, NoFence, UsageError
from playhead.hooks.state.watch import watch_of_store
from playhead.launch import record_run as recording
from playhead.launch.guest import hooking as hooks
from playhead.launch.replaying.fenced_child import in_fenced_child
from playhead.launch.replaying.mutation_order import fitting_order
from playhead.launch.sessions import RecordedCall, RecordedSession, worker_of
from playhead.recording import deck, lanes
from playhead.recording.deck import Call, Deck, Taped
from playhead.recording.recorder import Recorder
from playhead.recording.runs import Run
from playhead.replay.matching.nearest import differences
from playhead.replay.matching.taped import TapedCall, TapedRun
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.replay.report.divergence import Parting
from playhead.replay.time.taped_source import TapedSource
from playhead.tape.reader import Tape


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The argument of a worker's function: the worker's name, and the store as it was at the start."""

    worker: str
    snapshot: Any
    session: RecordedSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One difference between a worker and its tape."""

    kind: str
    worker: str
    detail: str
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """The comparison of one worker with its tape."""

    worker: str
    passed: bool
    served: int
    mismatches: tuple[Mismatch, ...] = ()
    value: Any = None
    error: str | None = None
    # `fenced`, or `unfenced`: then hooks alone stopped the calls that they saw.
    fence: str = "unfenced"

    def __str__(self) -> str:
        head = f"{'pass' if self.passed else 'FAIL'} {self.worker}: {self.served} calls served"
        return "\n".join([head, *(f"  {one.kind}: {one.detail}" for one in self.mismatches)])


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReport:
    """The comparison of all workers with the tape."""

    passed: bool
    workers: tuple[WorkerReport, ...]
    mismatches: tuple[Mismatch, ...] = field(default_factory=tuple)
    # `fenced`: the kernel kept all workers from the network and the files. `unfenced`: hooks alone stopped the
    # calls that they saw.
    fence: str = "unfenced"

    def __str__(self) -> str:
        verdict = f"{'pass' if self.passed else 'FAIL'} ({self.fence})"
        return "\n".join(
            [
                f"session: {verdict}",
                *map(str, self.workers),
                *(f"  {m.kind}: {m.detail}" for m in self.mismatches),
            ]
        )


class SessionMode(ReplayMode):
    """Replays like ReplayMode, but with real watched stores. A store is seeded from the tape, so mutations are made
    on it and compared, instead of being answered from the tape.
    """

    def __init__(
        self, recording: TapedRun, recorder: Recorder, worker: str, mutations: list[TapedCall]
    ) -> None:
        """`mutations` are the mutations of all workers, in the order in which they ended."""
        super().__init__(recording, recorder)
        self.worker = worker
        self.served = 0
        self._writer = recorder
        self._mutations = mutations
        self._at = 0
        self._is_ordered = False
        self._moving = threading.Lock()

    def answer(self, call: Call, lane: str) -> Taped | None:
        if call.boundary == "state":
            if not self.is_inside_mutation():
                self._catch_up()
            return None
        taped = super().answer(call, lane)
        self.served += 1
        return taped

    @staticmethod
    def is_inside_mutation() -> bool:
        return any(one.boundary == "state" for one in deck.inside())

    def finish(self) -> None:
        """End the worker: make the later mutations of the other workers."""
        while self._at < len(self._mutations):
            self._catch_up()

    def _catch_up(self) -> None:
        """Make the mutations of other workers that came before the next one of this worker. So this worker finds the
        store as in the recorded session, and its own mutations can be made for real.
        """
        with self._moving:
            if not self._is_ordered:
                self._is_ordered = True
                self._mutations = fitting_order(self._mutations, self._writer, self.recording.tape)
            while self._at < len(self._mutations):
                taped = self._mutations[self._at]
                self._at += 1
                if worker_of(taped.lane) == self.worker:
                    return
                store, _, method = taped.name.rpartition(".")
                watched = watch_of_store(store, self._writer)
                request = taped.request if isinstance(taped.request, dict) else {}
                arguments = thaw(request.get("arguments"))
                if watched is not None:
                    watched.apply(method, arguments if isinstance(arguments, dict) else {})


Worker = Callable[[World], Any]


def replay_worker(
    session: RecordedSession, worker: str, function: Worker, *, fenced: bool = True
) -> WorkerReport:
    """Run one worker again: every call is answered from the tape, and everything is compared with it.

    The worker runs in a forked process that the kernel keeps from the network and the files, where this machine
    has namespaces and this process has no other threads. `report.fence` says whether it did.

        report = playhead.replay_worker(session, "worker-1", lambda world: work(world.snapshot))
        assert report.passed, report

    Args:
        session: The session that `playhead.load` returned.
        worker: One of `session.workers`.
        function: Called with a `World`: the worker's name, and the store as it was at the start. It may be `async`.
        fenced: False: run it in this process, so that its changes of objects and files stay.

    Raises:
        UsageError: The session has no such worker.
    """
    if worker not in session.workers:
        raise UsageError(
            f"There is no worker {worker!r} in this session: it has {', '.join(session.workers)}."
        )
    scratch = _scratch(session)
    if fenced:
        with suppress(NoFence, OSError):
            scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
            report = in_fenced_child(
                lambda: _replayed(session, worker, function), keep=[str(scratch)]
            )
            return replace(report, fence="fenced")
    return _replayed(session, worker, function)


def _replayed(session: RecordedSession, worker: str, function: Worker) -> WorkerReport:
    share = _share(session.recording, worker)
    world = World(worker=worker, snapshot=session.snapshot(), session=session)
    with recording.record(name=f"replay of {worker}", store=_scratch(session)) as run:
        if not isinstance(run, Run):
            raise UsageError("The replay's own tape cannot be written; see the warning above.")
        mode = SessionMode(share, run.recorder, worker, _in_order(session.recording))
        value, error = _inside(run, mode, world, function)
    found = _checked(session, mode, RecordedSession(Tape(run.path)), error)
    return WorkerReport(
        worker=worker,
        passed=not found,
        served=mode.served,
        mismatches=tuple(found),
        value=value,
        error=None if error is None else f"{type(error).__name__}: {safe_str(error)}",
    )


def replay_session(
    session: RecordedSession, function: Worker, *, fenced: bool = True
) -> SessionReport:
    """Run every worker of a session again, one after the other, and compare each with the tape.

    Each worker has a store of its own, seeded from the tape. The mutations of the other workers are made on it
    in the order of the tape, so every worker finds the recorded state, and the content of the store at the end
    is that of the whole session.

        report = playhead.replay_session(playhead.load("last"), run_worker)
        assert report.passed, report

    Args:
        session: The session that `playhead.load` returned.
        function: Called once for each worker, as by `playhead.replay_worker`.
        fenced: As for `playhead.replay_worker`.
    """
    reports = tuple(
        replay_worker(session, worker, function, fenced=fenced) for worker in session.workers
    )
    is_fenced = bool(reports) and all(one.fence == "fenced" for one in reports)
    return SessionReport(
        passed=all(one.passed for one in reports),
        workers=reports,
        fence="fenced" if is_fenced else "unfenced",
    )


def _scratch(session: RecordedSession) -> Path:
    """Return the folder of the replay's own tapes: `replays` in the store of the recorded session."""
    return session.tape.run.parent.parent / "replays"


def _share(whole: TapedRun, worker: str) -> TapedRun:
    calls = [call for call in whole.calls if worker_of(call.lane) == worker]
    for call in calls:
        call.served = False
    return TapedRun(
        tape=whole.tape,
        calls=calls,
        below=whole.below,
        segments=whole.segments,
        ambient=whole.ambient,
        outputs=whole.outputs,
        run_start=whole.run_start,
        run_end=whole.run_end,
    )


def _in_order(recording: TapedRun) -> list[TapedCall]:
    """Return the mutations of all workers in the order of their ends, without those that another mutation made."""
    inner = {one.ref for those in recording.below.values() for one in those}
    done = [
        (call.outcome.mono, call.outcome.seq, call)
        for call in recording.calls
        if call.boundary == "state" and call.outcome is not None and call.ref not in inner
    ]
    return [call for _, _, call in sorted(done, key=lambda one: one[:2])]


def _inside(
    run: Run, mode: SessionMode, world: World, function: Worker
) -> tuple[Any, BaseException | None]:
    outer = deck.of_process()
    if outer is not None:
        deck.deactivate(outer)
    source = TapedSource(mode.recording.ambient, mode.recording.tape.manifest.started_ns)
    made: Deck = hooks.start(run.recorder, mode, source=source)
    try:
        with lanes.lane(world.worker):
            value = function(world)
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
        mode.finish()
        return value, None
    except Exception as error:  # noqa: BLE001  the worker's failure is compared as well
        return None, error
    finally:
        hooks.stop(made)
        if outer is not None:
            deck.activate(outer)


def _checked(
    session: RecordedSession, mode: SessionMode, again: RecordedSession, error: BaseException | None
) -> list[Mismatch]:
    """Return every mismatch: calls that are not on the tape, taped calls that were not made, mutations, state."""
    worker = mode.worker
    found = [_parted(worker, parting) for parting in mode.partings]
    found += [
        _never_asked(worker, one) for one in mode.matcher.unserved() if one.boundary != "state"
    ]
    found += _compared("mutation", worker, session.mutations(worker), again.mutations(worker))
    is_finished = error is None and not mode.partings
    for store in session.stores:
        then, now = session.final_state(store), again.final_state(store)
        is_used = now is not None or any(
            one.name.startswith(f"{store}.") for one in session.mutations(worker)
        )
        if (
            then is not None
            and is_used
            and then != now
            and (is_finished or len(session.workers) == 1)
        ):
            found.append(Mismatch(kind="final state", worker=worker, detail=_first(then, now)))
    if (
        error is not None
        and not isinstance(error, Divergence)
        and not _failed_then(session, worker)
    ):
        detail = f"{type(error).__name__}: {safe_str(error)}"
        found.append(Mismatch(kind="raised", worker=worker, detail=detail))
    return found


def _never_asked(worker: str, call: TapedCall) -> Mismatch:
    detail = f"{call.boundary} {call.name} was never called"
    return Mismatch(kind="unused", worker=worker, step=call.number, detail=detail)


def _failed_then(session: RecordedSession, worker: str) -> bool:
    return any(turn.how == "raised" for turn in session.agent_turns(worker))


def _parted(worker: str, parting: Parting) -> Mismatch:
    return Mismatch(
        kind=parting.kind, worker=worker, step=parting.step, detail=str(parting).replace("\n", " ")
    )


def _compared(
    kind: str, worker: str, then: list[RecordedCall], now: list[RecordedCall]
) -> list[Mismatch]:
    found = []
    for index in range(max(len(then), len(now))):
        old = then[index] if index < len(then) else None
        new = now[index] if index < len(now) else None
        left = (
            None if old is None else {"name": old.name, "request": old.request, "value": old.value}
        )
        right = (
            None if new is None else {"name": new.name, "request": new.request, "value": new.value}
        )
        if left != right:
            found.append(
                Mismatch(kind=kind, worker=worker, step=index + 1, detail=_first(left, right))
            )
    return found


def _first(then: Any, now: Any) -> str:
    if then is None or now is None:
        return f"{then!r} → {now!r}"[:400]
    found = differences(then, now)
    return (
        f"{found[0].path}: {found[0].taped!r} → {found[0].asked!r}"[:400]
        if found
        else "differs in type"
    )
