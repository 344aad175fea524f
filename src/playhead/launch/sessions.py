"""Recorded sessions of an orchestrator and its workers: calls, turns and stores by worker.

    session = playhead.load("last")
    report = playhead.replay_session(session, run_worker)   # run_worker(worker) for each worker
    assert report.passed, report

Reads tapes; `session_replay` runs the workers again.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead import config, events
from playhead.encoding.values import thaw
from playhead.errors import PlayheadError
from playhead.events import Event
from playhead.host.project import project_of
from playhead.replay.begin import replayable
from playhead.replay.matching.taped import TapedCall, TapedRun, answer_of
from playhead.replay.modes.taped_mode import with_output
from playhead.tape import store as stores
from playhead.tape.manifest import DETAILS, read_manifest
from playhead.tape.reader import Tape
from playhead.tape.single_file import folder_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
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
    # For a process: its output and its exit.
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTurn:
    """A turn of a worker's agent, as plain values."""

    name: str
    lane: str
    how: str | None
    value: Any
    error: Any
    seams: tuple[str, ...]
    took_ns: int | None
    wall_ns: int


class RecordedSession:
    """A recording, by worker. A worker is the first part of a lane: `worker-3` of `worker-3/1`."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.recording: TapedRun = replayable(tape)
        self._turns: list[tuple[Event, Event | None]] = []
        self._snapshots: list[Event] = []
        self._read()

    @property
    def details(self) -> dict[str, Any]:
        """The details of the run: `playhead.record(details={"config": …, "completed": […]})`."""
        found = self.tape.manifest.extra.get(DETAILS)
        return found if isinstance(found, dict) else {}

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
        """The workers in order of appearance. The main lane is the pool, which starts the workers; it counts as a
        worker only if no other lane has a name.
        """
        seen = [worker_of(call.lane) for call in self.recording.calls]
        seen += [worker_of(event.lane) for event, _ in self._turns]
        found = list(dict.fromkeys(seen))
        return [one for one in found if one != POOL] or found

    @property
    def stores(self) -> list[str]:
        """The names of the watched stores."""
        return list(dict.fromkeys(str(event.data.get("store")) for event in self._snapshots))

    def calls(self, worker: str | None = None, boundary: str | None = None) -> list[RecordedCall]:
        return [
            self._exchange(call)
            for call in self.recording.calls
            if (worker is None or worker_of(call.lane) == worker)
            and boundary in (None, call.boundary)
        ]

    def process_calls(self, worker: str | None = None) -> list[RecordedCall]:
        return self.calls(worker, "process")

    def mutations(self, worker: str | None = None) -> list[RecordedCall]:
        return self.calls(worker, "state")

    def agent_turns(self, worker: str | None = None) -> list[AgentTurn]:
        return [
            self._turn(begun, ended)
            for begun, ended in self._turns
            if worker is None or worker_of(begun.lane) == worker
        ]

    def snapshot(self, store: str | None = None) -> Any:
        """The store's content when the session began."""
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

    def _exchange(self, call: TapedCall) -> RecordedCall:
        ended = self.tape.whole(call.outcome).data if call.outcome is not None else {}
        printed = self._printed(call) if call.boundary == "process" else {}
        return RecordedCall(
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
            stdout=printed.get("stdout", ""),
            stderr=printed.get("stderr", ""),
            exit_code=ended.get("exit_code"),
        )

    def _printed(self, call: TapedCall) -> dict[str, str]:
        """The output of a process by stream, through pipes and on inherited streams."""
        taped = answer_of(self.tape, call, match={})
        whole = with_output(taped, {}, self.tape, self.recording.outputs)
        streams: dict[str, bytes] = {}
        for piece in whole.pieces:
            streams[piece.stream] = streams.get(piece.stream, b"") + piece.data
        return {name: data.decode("utf-8", "replace") for name, data in streams.items()}

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


# The lane that starts workers and waits for them.
POOL = "main"


def worker_of(lane: str) -> str:
    return lane.partition("/")[0]


def load(
    run: str | os.PathLike[str], *, store: str | os.PathLike[str] | None = None
) -> RecordedSession:
    """Load a recorded session, to look at it or to replay it in a test.

        session = playhead.load("last")
        session.workers                     # ['worker-1', 'worker-2']
        session.process_calls("worker-1")   # its requests and their results

    Args:
        run: The run's id, a unique prefix of it, `last`, `last~2`, or the path of its folder or single-file
            tape. `last` is the newest run of this project that is not a replay; with `store`, of that store.
        store: The folder that runs are kept in. By default the user's own store.

    Raises:
        PlayheadError: There is no such run, or it cannot be replayed.
    """
    path = Path(run).expanduser()
    if path.is_file():
        folder = Path(tempfile.mkdtemp(prefix="playhead-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return RecordedSession(
            Tape(folder_of(path, folder / (path.name.partition(".")[0] or "run")))
        )
    home = Path(store).expanduser() if store is not None else config.load().home
    asked = os.fspath(run)
    among = None
    if asked == "last" or asked.startswith("last~"):
        among = _own_runs(home, None if store is not None else str(project_of(Path.cwd())))
    return RecordedSession(Tape(stores.find_run(home, asked, among=among)))


def _own_runs(home: Path, project: str | None) -> list[str]:
    """Return the runs that `last` may mean, newest first: no replays, and only those of the project, if there is
    one.
    """
    found = []
    for run in stores.run_ids(home):
        try:
            manifest = read_manifest(home / "runs" / run)
        except PlayheadError:
            continue
        if manifest.replay_of is None and project in (None, manifest.project):
            found.append((manifest.started_ns, run))
    return [run for _, run in sorted(found, reverse=True)]
