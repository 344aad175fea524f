"""Close the run of a command: survey what its processes recorded, and write the last events.

Knows segments, holes and the manifest; does not know how the command was run.
"""

from __future__ import annotations

import dataclasses
import signal
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead import events
from playhead.encoding.values import Frozen, safe_str
from playhead.errors import PlayheadError
from playhead.events import Event, Status
from playhead.host.later import Later
from playhead.host.stderr import say
from playhead.launch import connections
from playhead.launch.connections import RecordedPlaces, port_of
from playhead.launch.guest import rules
from playhead.launch.guest.python_argv import is_closed, is_python
from playhead.launch.proxy.ports import why_silent
from playhead.launch.sidecar.process_tree import words
from playhead.launch.spawn_command import Attended, Ended
from playhead.recording.encoder import NewEvent
from playhead.recording.runs import Run
from playhead.tape.care.rebuild_manifest import manifest_from
from playhead.tape.manifest import SegmentSummary, write_manifest
from playhead.tape.reader import Tape
from playhead.tape.reading.segment_rows import Row
from playhead.tape.sealed.vault import close_vault
from playhead.tape.store import PLAN

if TYPE_CHECKING:
    from playhead.tape.sealed import seal as sealing
else:
    sealing = Later("playhead.tape.sealed.seal")  # smaller tapes are not worth sealing

# Below this size compression saves too little; above it, it would delay the prompt.
_WORTH_SEALING = 256 * 1024
_QUICK_TO_SEAL = 64 * 1024 * 1024

# A replay serves the taped result of these calls, whatever they do inside.
_SERVED_WHOLE = frozenset({"tool", "mcp", "state"})
_NEVER = 1 << 63

# These signals mean that a person, a supervisor or the kernel ended the run. Every other signal is a failure of the
# program.
_INTERRUPTIONS = frozenset(
    {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, signal.SIGTERM}
)


@dataclass(slots=True)
class Survey:
    """A survey of what the processes of a run have recorded."""

    # Segment → the event that started its process.
    started_by: dict[str, str | None] = field(default_factory=dict)
    # Calls that started a Python: the event → its command line.
    pythons: dict[str, list[str]] = field(default_factory=dict)
    # Calls that failed to start anything.
    failed: set[str] = field(default_factory=set)
    # Segment → the exception that ended its process.
    errors: dict[str, Any] = field(default_factory=dict)
    # Servers of the program whose requests were not recorded.
    unserved: set[str] = field(default_factory=set)
    # Conversations that a replay cannot have again.
    unanswerable: set[str] = field(default_factory=set)
    # Whether any model was called.
    asked: bool = False
    # Ports that recorded calls went to.
    ports: set[int] = field(default_factory=set)
    # Segment → the times at which it was inside a call that a replay serves as a whole.
    within: defaultdict[str, list[tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    # The calls of that kind that have no outcome yet: the event → its segment and time.
    open: dict[str, tuple[str, int]] = field(default_factory=dict)
    segments: list[SegmentSummary] = field(default_factory=list)
    events: int = 0
    lost: int = 0

    def note(self, event: Event) -> None:
        data = event.data
        if not event.ours or not isinstance(data, dict):
            return
        if event.kind == events.CALL and (port := port_of(data.get("request"))) is not None:
            self.ports.add(port)
        self._note_whole(event, data)
        if event.kind == events.SEGMENT_START:
            self.started_by[event.segment] = event.absolute(event.parent)
        elif event.kind == events.SEGMENT_END:
            if data.get("error") is not None:
                self.errors[event.segment] = data["error"]
        elif event.kind == events.HOLE and isinstance(data.get("server"), str):
            self.unserved.add(data["server"])
        elif event.kind == events.HOLE and isinstance(data.get("unanswerable"), str):
            self.unanswerable.add(data["unanswerable"])
        elif event.kind == events.CALL and data.get("boundary") == "llm":
            self.asked = True
        elif event.kind == events.CALL and data.get("boundary") == "process":
            argv = _argv(data.get("request"))
            if argv and is_python(argv[0]):
                self.pythons[event.ref] = argv
        elif event.kind == events.OUTCOME and data.get("how") == "raised":
            call = event.absolute(data.get("call"))
            if call is not None:
                self.failed.add(call)

    def _note_whole(self, event: Event, data: dict[str, Any]) -> None:
        if event.kind == events.CALL and data.get("boundary") in _SERVED_WHOLE:
            self.open[event.ref] = (event.segment, event.mono)
        elif event.kind == events.OUTCOME:
            segment, began = self.open.pop(event.absolute(data.get("call")) or "", ("", 0))
            if segment:
                self.within[segment].append((began, event.mono))

    def spans(self) -> Mapping[str, list[tuple[int, int]]]:
        """Return `within`, where calls that never ended last until the end."""
        for segment, began in self.open.values():
            self.within[segment].append((began, _NEVER))
        self.open.clear()
        return self.within


def prepare() -> None:
    """Do nothing: the call loads this module and its imports while the command runs, so that its end is quick.

    msgspec is not loaded: if the command ends before it would be loaded, its tape is small and is decoded without
    it.
    """


def survey(run: Path) -> Survey:
    """Read the tape as it is now, and survey it."""
    seen = Survey()

    def rows() -> Iterable[Row]:
        for row in Tape(run).rows():
            seen.note(row[0])
            yield row

    rebuilt = manifest_from(rows(), folder=run.name)
    seen.segments, seen.events, seen.lost = list(rebuilt.segments), rebuilt.events, rebuilt.lost
    return seen


def close(run: Run, command: list[str], attended: Attended) -> None:
    """Write the holes, `run.end` and the manifest."""
    ended, own = attended.ended, attended.own
    try:
        seen = survey(run.path)
    except (PlayheadError, OSError) as error:
        run.recorder.warn(f"the tape in {run.path} cannot be read back ({safe_str(error)}).")
        seen = Survey()
    for hole in holes(seen, command, root=run.recorder.root, own=own):
        run.recorder.append(NewEvent(events.HOLE, hole))
    for program, why in attended.unfollowed:
        run.recorder.append(
            NewEvent(events.HOLE, {"boundary": "process", "what": program, "why": why})
        )
    _tell_connections(run, seen, attended)
    _tell_left(run, attended)
    rules.withdraw(run.path)
    status = status_of(ended)
    failure = _error(seen, run.recorder.root, status)
    run.end(failure, status=status, exit_code=ended.code, pid=ended.pid)
    _complete(run, seen)


def _tell_connections(run: Run, seen: Survey, attended: Attended) -> None:
    """Write the known connections of the command to the tape and to the manifest."""
    rows = attended.connections
    is_replay = (run.path / PLAN).exists()
    if rows is None:
        facts: dict[str, Any] = {"connections": "not watched"}
        if attended.is_watch_lost:
            why = "their watcher was killed or could not read an address, so none are known"
            hole = {"boundary": "http", "what": "connections", "why": why}
            run.recorder.append(NewEvent(events.HOLE, hole))
    elif is_replay:
        kept_in = (dataclasses.replace(row, times=()) for row in rows if row.how != "inside")
        facts = {"stopped": [dataclasses.asdict(row) for row in kept_in]}
    else:
        ports = seen.ports | set(attended.known_ports)
        taped = RecordedPlaces(
            root=run.recorder.root,
            segments=set(seen.started_by),
            ports=ports,
            within=seen.spans(),
        )
        for row in connections.unrecorded(rows, taped):
            why = "a connection that neither a hook nor the proxy has seen"
            what = f"{row.program} to {row.to}"
            run.recorder.append(
                NewEvent(events.HOLE, {"boundary": "http", "what": what, "why": why})
            )
        unanswered = [
            *((row, "datagrams are not recorded") for row in connections.datagrams(rows, taped)),
            *((row, "a Unix socket of a daemon") for row in connections.daemons(rows, taped)),
        ]
        for row, why in unanswered:
            what = f"{row.program} to {row.to}"
            run.recorder.append(
                NewEvent(events.HOLE, {"boundary": "stream", "what": what, "why": why})
            )
        # In a replay, connections that the recorded run made as well are expected. Older tapes do not list theirs.
        places = sorted({row.to for row in rows if row.how == "datagram"})
        facts = {"refused": connections.refused(rows), "datagrams": places or ["none"]}
        if missing := connections.missing(rows, taped):
            facts["partial"] = connections.words(missing)
    if seen.unserved and not is_replay:
        facts.setdefault("partial", connections.unserved_words(seen.unserved))
    if seen.unanswerable and not is_replay:
        facts.setdefault("partial", connections.unanswerable_words(seen.unanswerable))
    extra = {name: value for name, value in facts.items() if value}
    run.manifest = dataclasses.replace(run.manifest, extra={**run.manifest.extra, **extra})


def _tell_left(run: Run, attended: Attended) -> None:
    """Name the processes that outlived the command. A replay ended them; a recording leaves them alone."""
    if not attended.left:
        return
    left = list(attended.left)
    if (run.path / PLAN).exists():
        say(f"ended {words(left)} that the command left behind.")
    else:
        pids = ", ".join(str(one.pid) for one in left[:5])
        say(f"the command left {words(left)} running: {pids}.")
    named = [one._asdict() for one in left]
    run.manifest = dataclasses.replace(
        run.manifest, extra={**run.manifest.extra, "left_running": named}
    )


def status_of(ended: Ended) -> Status:
    if ended.code == 0:
        return "ok"
    # A shell between us and the program reports the same signal as an exit code from 129 to 143.
    number = -ended.code if ended.code < 0 else ended.code - 128
    return "interrupted" if number in _INTERRUPTIONS else "failed"


def holes(
    seen: Survey, command: list[str], *, root: str, own: frozenset[str]
) -> Iterable[Mapping[str, Any]]:
    """Find Python processes that were started and recorded nothing, and agents that seem to have called no model."""
    reported = {parent for name, parent in seen.started_by.items() if name not in own}
    if command and is_python(command[0]) and root not in reported:
        yield {"boundary": "process", "what": _shown(command), "why": _why(command)}
    for call, argv in seen.pythons.items():
        if call not in reported and call not in seen.failed:
            yield {"boundary": "process", "what": _shown(argv), "why": _why(argv), "call": call}
    if not seen.asked and (why := why_silent(command)) is not None:
        yield {"boundary": "llm", "what": _shown(command), "why": why}


def seal_if_worth(run: Run) -> str | None:
    """Seal a finished run. Return None, or the reason why it was not sealed."""
    size = sum(one.bytes for one in run.manifest.segments)
    if size < _WORTH_SEALING:
        return "small"
    if size > _QUICK_TO_SEAL:
        return "large"
    try:
        sealing.seal(run.path)
    except PlayheadError as error:
        return safe_str(error)
    return None


def _complete(run: Run, seen: Survey) -> None:
    """Write the manifest with the segments of all processes, not only of the launcher."""
    ours = run.manifest.segments[-1]  # a resumed run has earlier segments before
    others = [one for one in seen.segments if one.name != ours.name]
    run.manifest = dataclasses.replace(
        run.manifest,
        segments=[ours, *others],
        events=ours.events + sum(one.events for one in others),
        lost=max(run.manifest.lost, seen.lost),
    )
    try:
        write_manifest(run.path, run.manifest)
    except OSError as error:
        run.recorder.warn(f"the manifest of {run.path} could not be written ({safe_str(error)}).")


def _error(seen: Survey, root: str, status: Status) -> Frozen | None:
    """Return the exception that ended the command itself, as its process recorded it."""
    if status == "ok":
        return None
    found = [error for name, error in seen.errors.items() if seen.started_by.get(name) == root]
    return Frozen(found[-1]) if found else None


def _argv(request: Any) -> list[str]:
    argv = request.get("argv") if isinstance(request, dict) else None
    return [str(word) for word in argv] if isinstance(argv, list) else []


def _shown(argv: list[str]) -> str:
    return " ".join(argv)[:200]


def _why(argv: list[str]) -> str:
    if is_closed(argv):
        return "it was started with -S, -I or -E, which disable Playhead's hooks"
    return "Playhead was not loaded: this Python is older than 3.10, or got another environment"


def fill_vault(run: Run, key: str) -> None:
    """Move the secrets of the run into its vault. Fails open: without one, a replay has placeholders."""
    try:
        close_vault(run.path, key)
    except (PlayheadError, OSError) as error:
        say(f"the vault could not be written ({safe_str(error)}); the tape is in {run.path}.")
