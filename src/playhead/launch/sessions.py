"""Recorded sessions of an orchestrator and its workers, re-run in a test: system D in three calls.

    session = playhead.load("last")
    report = playhead.replay_session(session, run_worker)   # run_worker(worker) for each worker
    assert report.passed, report

Subprocesses, agent turns and tools are answered from the tape, the clock is the tape's, the store is
what `run_worker` builds from `worker.snapshot`. Knows recordings and the replay mode; no file formats.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead import config, events
from playhead.encoding.values import safe_str, thaw
from playhead.errors import Divergence, UsageError
from playhead.events import Event
from playhead.launch import record_run as recording
from playhead.launch.guest import hooking as hooks
from playhead.recording import deck, lanes
from playhead.recording.deck import Call, Deck, Taped
from playhead.recording.recorder import Recorder
from playhead.recording.runs import Run
from playhead.replay.begin import replayable
from playhead.replay.matching.nearest import differences
from playhead.replay.matching.taped import TapedCall, TapedRun
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.replay.report.divergence import Parting
from playhead.replay.time.taped_source import TapedSource
from playhead.tape import store as stores
from playhead.tape.reader import Tape
from playhead.tape.single_file import unpack


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A call of a worker and how it ended, as plain values."""

    number: int
    seq: int
    lane: str
    boundary: str
    name: str
    request: Any
    how: str | None
    value: Any
    took_ns: int | None
    wall_ns: int
    thread: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTurn:
    name: str
    lane: str
    how: str | None
    value: Any
    error: Any
    seams: tuple[str, ...]
    took_ns: int | None
    wall_ns: int


class Session:
    """A recording, by worker. A worker is the first part of a lane: `worker-3` of `worker-3/1`."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.recording: TapedRun = replayable(tape)
        self._turns: list[tuple[Event, Event | None]] = []
        self._snapshots: list[Event] = []
        self._read()

    def _read(self) -> None:
        begun: dict[str, Event] = {}
        ended: dict[str, Event] = {}
        for event in self.tape.events():
            if not event.ours:
                continue
            if event.kind == events.TURN_START:
                begun[event.ref] = event
            elif event.kind == events.TURN_END:
                ended[event.absolute(event.data.get("turn")) or ""] = event
            elif event.kind == events.SNAPSHOT:
                self._snapshots.append(self.tape.whole(event))
        self._turns = [(event, ended.get(ref)) for ref, event in begun.items()]

    @property
    def workers(self) -> list[str]:
        """In order of appearance; the main lane only if it crossed a boundary or took a turn."""
        seen = [worker_of(call.lane) for call in self.recording.calls]
        seen += [worker_of(event.lane) for event, _ in self._turns]
        return list(dict.fromkeys(seen))

    def calls(self, worker: str | None = None, boundary: str | None = None) -> list[Exchange]:
        return [
            self._exchange(call)
            for call in self.recording.calls
            if (worker is None or worker_of(call.lane) == worker)
            and boundary in (None, call.boundary)
        ]

    def process_calls(self, worker: str | None = None) -> list[Exchange]:
        return self.calls(worker, "process")

    def mutations(self, worker: str | None = None) -> list[Exchange]:
        return self.calls(worker, "state")

    def agent_turns(self, worker: str | None = None) -> list[AgentTurn]:
        return [
            self._turn(begun, ended)
            for begun, ended in self._turns
            if worker is None or worker_of(begun.lane) == worker
        ]

    def snapshot(self, store: str | None = None) -> Any:
        """The store as it was when the session began."""
        return self._state("start", store)

    def final_state(self, store: str | None = None) -> Any:
        return self._state("end", store)

    def _state(self, when: str, store: str | None) -> Any:
        found = [
            event.data
            for event in self._snapshots
            if event.data.get("when") == when and store in (None, event.data.get("store"))
        ]
        if not found:
            return None
        return thaw((found[0] if when == "start" else found[-1]).get("value"))

    def _exchange(self, call: TapedCall) -> Exchange:
        ended = self.tape.whole(call.outcome).data if call.outcome is not None else {}
        return Exchange(
            number=call.number,
            seq=call.event.seq,
            lane=call.lane,
            boundary=call.boundary,
            name=call.name,
            request=call.request,
            how=ended.get("how"),
            value=thaw(ended.get("value")),
            took_ns=ended.get("took_ns"),
            wall_ns=call.event.wall,
            thread=call.event.thread,
        )

    def _turn(self, begun: Event, ended: Event | None) -> AgentTurn:
        end: dict[str, Any] = self.tape.whole(ended).data if ended is not None else {}
        return AgentTurn(
            name=str(begun.data.get("name")),
            lane=begun.lane,
            how=end.get("how"),
            value=thaw(end.get("value")),
            error=end.get("error"),
            seams=tuple(str(seam.get("name")) for seam in end.get("seams") or ()),
            took_ns=end.get("took_ns"),
            wall_ns=begun.wall,
        )


def worker_of(lane: str) -> str:
    return lane.partition("/")[0]


def load(run: str | os.PathLike[str], *, store: str | os.PathLike[str] | None = None) -> Session:
    """Load a recorded session, to look at it or to replay it in a test.

        session = playhead.load("last")
        session.workers                     # ['worker-1', 'worker-2']
        session.process_calls("worker-1")   # what it asked, and what it got

    Args:
        run: The run's id, a unique prefix of it, `last`, or the path of its folder or single-file tape.
        store: The folder that runs are kept in. By default the user's own store.

    Raises:
        PlayheadError: There is no such run, or it cannot be replayed.
    """
    path = Path(run).expanduser()
    if path.is_file():
        folder = Path(tempfile.mkdtemp(prefix="playhead-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return Session(Tape(unpack(path, folder / path.name.partition(".")[0])))
    home = Path(store).expanduser() if store is not None else config.load().home
    return Session(Tape(stores.find_run(home, os.fspath(run))))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a worker's function is given: who it is, and the store as it was."""

    worker: str
    snapshot: Any
    session: Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    kind: str
    worker: str
    detail: str
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """How one worker fared against its tape."""

    worker: str
    passed: bool
    served: int
    mismatches: tuple[Mismatch, ...] = ()
    value: Any = None
    error: str | None = None

    def __str__(self) -> str:
        head = f"{'pass' if self.passed else 'FAIL'} {self.worker}: {self.served} calls served"
        return "\n".join([head, *(f"  {one.kind}: {one.detail}" for one in self.mismatches)])


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReport:
    """How all of them fared."""

    passed: bool
    workers: tuple[WorkerReport, ...]
    mismatches: tuple[Mismatch, ...] = field(default_factory=tuple)

    def __str__(self) -> str:
        verdict = "pass" if self.passed else "FAIL"
        return "\n".join(
            [
                f"session: {verdict}",
                *map(str, self.workers),
                *(f"  {m.kind}: {m.detail}" for m in self.mismatches),
            ]
        )


class SessionMode(ReplayMode):
    """As replay, but a watched store is real: it was seeded from the tape, so its mutations are made
    on it and compared, instead of being answered for it.
    """

    def __init__(self, recording: TapedRun, recorder: Recorder, worker: str) -> None:
        super().__init__(recording, recorder)
        self.worker = worker
        self.served = 0

    def answer(self, call: Call, lane: str) -> Taped | None:
        if call.boundary == "state":
            return None
        taped = super().answer(call, lane)
        self.served += 1
        return taped


Worker = Callable[[World], Any]


def replay_worker(session: Session, worker: str, function: Worker) -> WorkerReport:
    """Run one worker again: every call is answered from the tape, and everything is compared with it.

        report = playhead.replay_worker(session, "worker-1", lambda world: work(world.snapshot))
        assert report.passed, report

    Args:
        session: What `playhead.load` returned.
        worker: One of `session.workers`.
        function: Called with a `World`: the worker's name, and the store as it was at the start.

    Raises:
        UsageError: The session has no such worker.
    """
    if worker not in session.workers:
        raise UsageError(
            f"There is no worker {worker!r} in this session: it has {', '.join(session.workers)}."
        )
    share = _share(session.recording, worker)
    world = World(worker=worker, snapshot=session.snapshot(), session=session)
    with recording.record(name=f"replay of {worker}", store=_scratch(session)) as run:
        if not isinstance(run, Run):
            raise UsageError("The replay's own tape cannot be written; see the warning above.")
        mode = SessionMode(share, run.recorder, worker)
        value, error = _inside(run, mode, world, function)
    found = _checked(session, mode, Session(Tape(run.path)), error)
    return WorkerReport(
        worker=worker,
        passed=not found,
        served=mode.served,
        mismatches=tuple(found),
        value=value,
        error=None if error is None else f"{type(error).__name__}: {safe_str(error)}",
    )


def replay_session(session: Session, function: Worker) -> SessionReport:
    """Run every worker of a session again, one after the other, and compare each with the tape.

        report = playhead.replay_session(playhead.load("last"), run_worker)
        assert report.passed, report

    Args:
        session: What `playhead.load` returned.
        function: Called once for each worker, as by `playhead.replay_worker`.
    """
    reports = tuple(replay_worker(session, worker, function) for worker in session.workers)
    return SessionReport(passed=all(one.passed for one in reports), workers=reports)


def _scratch(session: Session) -> Path:
    """The replay's own tapes lie beside the recorded ones' store, in a corner of their own."""
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
            return function(world), None
    except Exception as error:  # noqa: BLE001  the worker's own failure is part of what is compared
        return None, error
    finally:
        hooks.stop(made)
        if outer is not None:
            deck.activate(outer)


def _checked(
    session: Session, mode: SessionMode, again: Session, error: BaseException | None
) -> list[Mismatch]:
    """Every mismatch: what was asked and not taped, taped and not asked, mutations, state."""
    worker = mode.worker
    found = [_parted(worker, parting) for parting in mode.partings]
    found += [
        _never_asked(worker, one) for one in mode.matcher.unserved() if one.boundary != "state"
    ]
    found += _compared("mutation", worker, session.mutations(worker), again.mutations(worker))
    then, now = session.final_state(), again.final_state()
    if len(session.workers) == 1 and then is not None and then != now:
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
    detail = f"{call.boundary} {call.name} was never asked"
    return Mismatch(kind="unused", worker=worker, step=call.number, detail=detail)


def _failed_then(session: Session, worker: str) -> bool:
    return any(turn.how == "raised" for turn in session.agent_turns(worker))


def _parted(worker: str, parting: Parting) -> Mismatch:
    return Mismatch(
        kind=parting.kind, worker=worker, step=parting.step, detail=str(parting).replace("\n", " ")
    )


def _compared(kind: str, worker: str, then: list[Exchange], now: list[Exchange]) -> list[Mismatch]:
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


__all__ = ["Session", "SessionReport", "WorkerReport", "load", "replay_session", "replay_worker"]
