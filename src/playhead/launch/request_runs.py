"""Write a run of its own for each request that clients sent to a recorded server (`record --run-per request`).

Such a run has the events of its request: the connection, the calls, their answers. What belongs to no request, such as
the start of the program, stays in the run of the server. So a replay of such a run is a replay of that request of the
server's run. Knows tapes and their lines; does not know how requests are recorded (`hooks/input`).
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from playhead import clock, events
from playhead.events import Event
from playhead.replay.inbound_requests import INBOUND, InboundRequest, InboundRequests
from playhead.tape.format import close_line, members_of, segment_file
from playhead.tape.manifest import Manifest, SegmentSummary, write_manifest
from playhead.tape.reader import Tape
from playhead.tape.store import announce, new_run

# The members of a manifest's `extra`: the run of the server, and the number of the request there.
SERVER_RUN, REQUEST = "server_run", "request"
_FAILED = 500
# Kinds that describe the program or the machine, and not a request.
_OF_THE_PROGRAM = frozenset(
    {events.AMBIENT, events.ORDER, events.OUTPUT, events.HOOK, events.SEGMENT_END, events.RUN_END}
)


def request_of_server(manifest: Manifest) -> tuple[str, int] | None:
    """Return the run of the server and the number of the request, for a run that has one request."""
    run, number = manifest.extra.get(SERVER_RUN), manifest.extra.get(REQUEST)
    return (run, number) if isinstance(run, str) and type(number) is int else None


def write_request_runs(run: Path) -> list[str]:
    """Write the runs of all requests of this run into its store, and return their ids. Reads the tape once for the
    requests, and once for their events.
    """
    tape = Tape(run)
    turns = [one for one in tape.events() if one.kind == events.TURN_START and one.ours]
    requests = InboundRequests([one for one in turns if INBOUND in _data(one)])
    drafts = [_RequestRun(tape, one) for one in requests.all]
    by_request = {draft.request.ref: draft for draft in drafts}
    by_connection: dict[str, list[_RequestRun]] = {}
    for draft in drafts:
        by_connection.setdefault(draft.request.connection, []).append(draft)
    for event, _, raw in tape.rows():
        if event.kind in (events.SEGMENT_START, events.RUN_START):
            for draft in drafts:
                draft.begin(event, raw)
            continue
        if not event.ours or event.kind in _OF_THE_PROGRAM:
            continue
        connection = event.ref if event.kind == events.CALL else event.absolute(event.parent)
        if event.kind != events.TURN_START and connection in by_connection:
            for draft in by_connection[connection]:
                draft.add_of_connection(event, raw)
        elif (owner := requests.at(event.lane, event.mono)) is not None:
            by_request[owner.ref].add(event, raw)
    return [draft.finish() for draft in drafts]


class _RequestRun:
    """The run of one request, in memory."""

    def __init__(self, tape: Tape, request: InboundRequest) -> None:
        self.request = request
        self._tape = tape
        self._home = tape.run.parent.parent
        self._id = ""
        self._starts: list[tuple[Event, bytes]] = []
        self._lines: dict[str, list[tuple[Event, bytes]]] = {}
        self._began: Event | None = None
        self._ended: Event | None = None

    def begin(self, event: Event, raw: bytes) -> None:
        """Add the beginning of the run, or of a process."""
        self._starts.append((event, raw))

    def add_of_connection(self, event: Event, raw: bytes) -> None:
        """Add an event of the connection, if it is not of another request."""
        data = _data(event)
        if event.kind == events.CHUNK and data.get("stream") != "head":
            at_ns = (data.get("at_ns") or [0])[0]
            if not self.request.since_ns <= at_ns < self.request.until_ns:
                return
        is_last = self.request.until_ns > int(data.get("took_ns") or 0)
        if event.kind == events.OUTCOME and not is_last:
            # It has the end of the last answer, and the time of all requests.
            kept = {"call": data.get("call"), "how": "returned", "took_ns": self.request.until_ns}
            raw = _with_data(raw, kept)
        self.add(event, raw)

    def add(self, event: Event, raw: bytes) -> None:
        if event.ref == self.request.ref:
            self._began = event
        elif event.kind == events.TURN_END and event.absolute(event.parent) == self.request.ref:
            self._ended = event
        self._lines.setdefault(event.segment, []).append((event, raw))

    def finish(self) -> str:
        """Write the run to the store. Return its id."""
        began = self._began
        if began is None:
            raise AssertionError("a request begins with its turn")
        self._id, folder = new_run(self._home, None, began.wall)
        summaries = []
        # The run begins with its first event, and not with the server.
        first = min((event for lines in self._lines.values() for event, _ in lines), key=_moment)
        begins = {"wall": first.wall, "mono": first.mono}
        for segment in dict.fromkeys(event.segment for event, _ in self._starts):
            starts = [
                (event, _with_data(raw, {**_data(event), "run": self._id}, **begins))
                for event, raw in self._starts
                if event.segment == segment
            ]
            own = self._lines.get(segment, [])
            if own or any(event.kind == events.RUN_START for event, _ in starts):
                summaries.append(_write_segment(folder, segment, [*starts, *own]))
        write_manifest(folder, self._manifest(began, summaries))
        announce(folder)
        return self._id

    def _manifest(self, began: Event, segments: list[SegmentSummary]) -> Manifest:
        ended = {} if self._ended is None else _data(self._ended)
        value = ended.get("value")
        status = value.get("status") if isinstance(value, dict) else None
        is_ok = type(status) is int and status < _FAILED
        of = self._tape.manifest
        took_ns = ended.get("took_ns")
        return dataclasses.replace(
            of,
            run=self._id,
            name=self.request.name,
            status="ok" if is_ok else "failed",
            started_at=clock.iso(began.wall),
            started_ns=began.wall,
            ended_at=None if self._ended is None else clock.iso(self._ended.wall),
            duration_s=took_ns / 1e9 if type(took_ns) is int else None,
            exit_code=None,
            error=None,
            events=sum(one.events for one in segments),
            lost=0,
            segments=segments,
            keep=False,
            extra={SERVER_RUN: of.run, REQUEST: self.request.number},
        )


def _write_segment(folder: Path, name: str, rows: list[tuple[Event, bytes]]) -> SegmentSummary:
    """Write the lines of one process. Events that are left out between two others leave a `gap` without losses."""
    rows.sort(key=lambda row: row[0].seq)
    crc = size = count = following = 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(folder / segment_file(name), flags, 0o600), "wb") as file:
        for event, raw in rows:
            bodies = [raw.rstrip(b"\n")[: raw.rindex(b',"crc":"')]]
            if event.seq > following:
                bodies.insert(0, _gap(event, name, following))
            for body in bodies:
                line, crc = close_line(body, crc)
                size += file.write(line)
                count += 1
            following = event.seq + 1
    return SegmentSummary(name=name, events=count, bytes=size, crc=f"{crc:08x}")


def _gap(event: Event, segment: str, first: int) -> bytes:
    ids = {"pid": event.pid} if segment == str(event.pid) else {"pid": event.pid, "seg": segment}
    data: dict[str, Any] = {"lost": 0, "why": "events of other requests", "until": event.seq - 1}
    data |= {"repaired": "", "left_out": True}
    members = {"seq": first, "kind": events.GAP, "wall": event.wall, "mono": event.mono, **ids}
    return json.dumps({**members, "data": data}, separators=(",", ":")).encode()[:-1]


def _with_data(raw: bytes, data: dict[str, Any], **others: int) -> bytes:
    """Return the line with other data and members. Its checksum is computed again when it is written."""
    members = {**members_of(raw), "data": data, **others}
    crc = members.pop("crc", "0")
    text = json.dumps({**members, "crc": crc}, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _moment(event: Event) -> int:
    return event.mono


def _data(event: Event) -> dict[str, Any]:
    return event.data if isinstance(event.data, dict) else {}
