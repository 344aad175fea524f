"""The calls of a tape, ready to be served, and taped exceptions as exceptions again.

Knows events and the tape; not how calls are matched. Imports nothing that a tape names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from playhead import events
from playhead.encoding.values import thaw
from playhead.events import Event
from playhead.host.later import Later
from playhead.recording.chunks import as_bytes
from playhead.recording.deck import Piece, Taped
from playhead.redact.encoded_bodies import encoding_of, in_encoding
from playhead.redact.vault_notes import filled, filled_bytes
from playhead.replay.matching.fingerprint import plain_key
from playhead.replay.matching.taped_errors import rebuild
from playhead.replay.points_table import PointsTable
from playhead.tape.blobs import SPILLED
from playhead.tape.reader import Tape, collector_paused

if TYPE_CHECKING:
    from playhead.llm import http_headers
    from playhead.replay import inbound_requests
    from playhead.replay.inbound_requests import InboundRequest
else:
    inbound_requests = Later("playhead.replay.inbound_requests")  # for `replay --request`
    http_headers = Later(
        "playhead.llm.http_headers"
    )  # for compressed answers with a secret of the vault


@dataclass(slots=True, kw_only=True, eq=False)
class TapedCall:
    """A taped call. During a replay only `served` changes."""

    number: int
    event: Event
    key: Hashable
    outcome: Event | None = None
    chunks: list[Event] = field(default_factory=list)
    served: bool = False
    # Whether a part of it is in blobs: searching every answer for this takes as long as loading it.
    spilled: bool = False
    # Knows the places of its moments in the order of the tape; None: the order is not kept.
    table: PointsTable | None = None
    # For a connection of which one request is replayed.
    request_alone: InboundRequest | None = None
    # Whether a replay of one request may leave it out.
    is_optional: bool = False

    def moment(self, at_ns: int, *, left: int | None = None) -> int:
        """Return the moment `at_ns` after the call began, with its place in the order, if it has one."""
        if self.table is None:
            return at_ns
        return self.table.moment(self.event.segment, self.event.seq, at_ns, left=left)

    @property
    def ref(self) -> str:
        return self.event.ref

    @property
    def lane(self) -> str:
        return self.event.lane

    @property
    def boundary(self) -> str:
        return str(self.event.data.get("boundary", ""))

    @property
    def name(self) -> str:
        return str(self.event.data.get("name", ""))

    @property
    def request(self) -> Any:
        return self.event.data.get("request")


@dataclass(slots=True, kw_only=True)
class TapedRun:
    """The calls that a process may take from the tape: its own, and those of the children it forked."""

    tape: Tape
    calls: list[TapedCall]
    # The children of each call: a taped answer makes them unnecessary.
    below: dict[str, list[TapedCall]]
    segments: dict[str, Event]
    ambient: list[Event]
    outputs: list[Event]
    # The beginnings and ends of turns; inbound requests are turns.
    turns: list[Event] = field(default_factory=list)
    # The order of points, as packed events.
    points: list[Event] = field(default_factory=list)
    table: PointsTable | None = None
    # Lines that HTTP libraries logged about their connections, by stream: a replay has none.
    log_lines: dict[str, list[str]] = field(default_factory=dict)
    run_start: Event | None = None
    run_end: Event | None = None
    # Segments that were closed properly. The processes of the others were killed, or exited without closing them.
    closed: set[str] = field(default_factory=set)
    # When they were closed.
    ends: dict[str, int] = field(default_factory=dict)
    # The folder that the program runs in now, if it differs from that of this process.
    cwd: str | None = None
    # The only request that is replayed; None: all of them.
    request: InboundRequest | None = None

    @property
    def was_killed(self) -> bool:
        """Return whether a process that made calls never closed its segment; without any calls, whether the command was
        killed.
        """
        if not self.calls:
            code = self.tape.manifest.exit_code
            return code is not None and (code < 0 or code > 128)  # a shell adds 128 to a signal
        return any(call.event.segment not in self.closed for call in self.calls)


def load(tape: Tape, *, request: int | None = None) -> TapedRun:
    """Read the whole tape once. Blobs stay on disk until their call is served. `request`: leave out the other requests
    that clients sent to the program.
    """
    recording = TapedRun(
        tape=tape,
        calls=[],
        below={},
        segments={},
        ambient=[],
        outputs=[],
    )
    by_ref: dict[tuple[str, int], TapedCall] = {}
    with collector_paused():
        for event, _, raw in tape.rows():
            if event.ours and isinstance(event.data, dict):
                _hear(recording, by_ref, event, spilled=SPILLED in raw)
        _enclose_transports(recording)
        if request is not None:
            recording.request = inbound_requests.keep_request(recording, request)
        _keep_order(recording)
    return recording


def _enclose_transports(recording: TapedRun) -> None:
    """Put requests of an MCP connection that no MCP call made (its notifications, its stream of messages from
    the server) below the call that opened the connection: a replay serves that call whole.
    """
    opened: dict[str, TapedCall] = {}
    enclosed = {one.ref for below in recording.below.values() for one in below}
    for call in recording.calls:
        url = call.request.get("url") if isinstance(call.request, dict) else None
        if not isinstance(url, str):
            continue
        if call.boundary == "mcp":
            opened[url] = call
        elif call.boundary == "http" and url in opened and call.ref not in enclosed:
            recording.below.setdefault(opened[url].ref, []).append(call)


def _keep_order(recording: TapedRun) -> None:
    """Connect the calls with their places in the order. Tapes of format 1 have no points: their calls come in the order
    of their times.
    """
    is_resumed = recording.tape.manifest.generation > 0
    table = PointsTable(recording.points, is_resumed=is_resumed)
    recording.points = []
    recording.log_lines = table.log_lines
    if table:
        recording.table = table
        for call in recording.calls:
            call.table = table
        table.know_lanes(
            {(call.event.segment, call.event.seq): call.lane for call in recording.calls}
        )
        if table.prints:
            served = {one.ref for one in recording.calls if not one.event.data.get("own")}
            table.know_processes(recording.segments, served)


def forget_order(recording: TapedRun) -> None:
    """Serve every call as soon as its time has come, in the order in which the program is ready for them."""
    recording.table = None
    for call in recording.calls:
        call.table = None


def _hear(
    recording: TapedRun, by_ref: dict[tuple[str, int], TapedCall], event: Event, *, spilled: bool
) -> None:
    kind = event.kind
    if kind == events.CALL:
        _call(recording, by_ref, event, spilled=spilled)
    elif kind in (events.CHUNK, events.OUTCOME):
        ref = event.data.get("call")
        owner = by_ref.get((event.segment, ref)) if type(ref) is int else None
        if owner is None:
            return
        owner.spilled = owner.spilled or spilled
        if kind == events.CHUNK:
            owner.chunks.append(event)
        else:
            owner.outcome = event
    elif kind == events.SEGMENT_START:
        recording.segments[event.segment] = event
    elif kind == events.SEGMENT_END:
        recording.closed.add(event.segment)
        recording.ends[event.segment] = event.mono
    elif kind == events.AMBIENT:
        recording.ambient.append(recording.tape.whole(event) if spilled else event)
    elif kind == events.ORDER:
        recording.points.append(recording.tape.whole(event) if spilled else event)
    elif kind == events.OUTPUT:
        recording.outputs.append(recording.tape.whole(event) if spilled else event)
    elif kind in (events.TURN_START, events.TURN_END):
        recording.turns.append(event)
    elif kind == events.RUN_START and recording.run_start is None:
        recording.run_start = event
    elif kind == events.RUN_END:
        recording.run_end = event


def _call(
    recording: TapedRun, by_ref: dict[tuple[str, int], TapedCall], event: Event, *, spilled: bool
) -> None:
    if not isinstance(event.data, dict):
        return
    if spilled:
        event = recording.tape.whole(event)
    call = TapedCall(
        number=len(recording.calls) + 1, event=event, key=plain_key(event.data.get("request"))
    )
    recording.calls.append(call)
    segment = event.segment
    by_ref[segment, event.seq] = call
    parent = event.parent
    if isinstance(parent, str):
        above, _, seq = parent.rpartition(":")
        place = (above, int(seq) if seq.isdigit() else -1)
    else:
        place = (segment, -1 if parent is None else parent)
    enclosing = by_ref.get(place)
    if enclosing is not None:
        recording.below.setdefault(enclosing.ref, []).append(call)


def answer_of(
    tape: Tape,
    call: TapedCall,
    *,
    match: dict[str, Any],
    dies: Callable[[], None] | None = None,
    quiet: bool = False,
    left_ns: int | None = None,
) -> Taped:
    """Return the taped answer, with its pieces cut as they were recorded. A call without an outcome was in flight when
    the run died: the part that arrived is served, and then `dies` ends the process. `left_ns`: see
    `left_open_ns`.
    """
    whole = tape.whole if call.spilled else _as_it_is
    secrets = tape.secrets
    ended = {} if call.outcome is None else whole(call.outcome).data
    took_ns = int(ended.get("took_ns") or 0)
    left = took_ns if ended.get("how") == "left" else None
    # The last pieces may have been written together with the outcome.
    chunks = [*(whole(event).data for event in call.chunks), *ended.get("streams", ())]
    head, head_ns, pieces = _streamed(call, chunks, left)
    if secrets:
        pieces = _with_secrets(pieces, head, secrets)
        head, ended = filled(head, secrets), filled(ended, secrets)
    request = call.request_alone
    answer = Taped(
        how="cut",
        head=head,
        head_ns=head_ns,
        pieces=pieces,
        match=match,
        began_ns=call.event.mono,
        quiet=quiet,
        request=None if request is None else request.index,
    )
    if call.outcome is None and left_ns is not None:
        answer.how = "left"
        answer.took_ns = left_ns
        return answer
    if call.outcome is None:
        answer.error = ConnectionResetError("the recorded run was killed here")
        answer.dies = dies
        return answer
    known = ("call", "how", "took_ns", "value", "error", "chunks", "bytes", "streams")
    answer.how = str(ended.get("how", "returned"))
    answer.value, answer.frozen = thaw(ended.get("value")), ended.get("value")
    answer.error, answer.frozen_error = rebuild(ended.get("error")), ended.get("error")
    answer.facts = _facts(call, {name: item for name, item in ended.items() if name not in known})
    answer.took_ns = call.moment(took_ns, left=left)
    return answer


def _streamed(
    call: TapedCall, chunks: Iterable[dict[str, Any]], left: int | None
) -> tuple[Any, int | None, list[Piece]]:
    """Return the head of the answer, its time, and the pieces that came after it."""
    head: Any = None
    head_ns: int | None = None
    pieces: list[Piece] = []
    for data in chunks:
        stream = str(data.get("stream", ""))
        if stream == "head":
            head = data.get("value")
            head_ns = call.moment(int((data.get("at_ns") or [0])[0]), left=left)
            continue
        pieces.extend(_pieces(call, stream, data, left))
    request = call.request_alone
    if request is not None:
        pieces = [one for one in pieces if request.since_ns <= one.at_ns < request.until_ns]
    return head, head_ns, pieces


def _facts(call: TapedCall, facts: dict[str, Any]) -> dict[str, Any]:
    """Add the places of the exit of a process, and of the ends of its streams."""
    exited_ns, eof_ns = facts.get("exited_ns"), facts.get("eof_ns")
    if call.table is not None and type(exited_ns) is int:
        facts["exited_ns"] = call.moment(exited_ns)
    if call.table is not None and isinstance(eof_ns, dict):
        facts["eof_ns"] = {
            stream: call.moment(at_ns) for stream, at_ns in eof_ns.items() if type(at_ns) is int
        }
    wrote = facts.get("wrote")
    if call.table is not None and isinstance(wrote, dict):
        facts["wrote"] = {stream: _placed(call, parts) for stream, parts in wrote.items()}
    return facts


def _placed(call: TapedCall, parts: Any) -> Any:
    """Return the parts of the command's output that a child wrote, with the place of each. Tapes of format 1 have one
    part, without a time.
    """
    if not (isinstance(parts, list) and parts and isinstance(parts[0], list)):
        return parts
    return [
        [
            *one[:3],
            call.moment(one[3]),
            *([length, checksum, call.moment(later)] for length, checksum, later in one[4:]),
        ]
        for one in parts
    ]


def _with_secrets(pieces: list[Piece], head: Any, secrets: Mapping[bytes, bytes]) -> list[Piece]:
    """Return the pieces with secrets in place of placeholders. A placeholder is never cut in two, but a compressed body
    has to be decoded as a whole.
    """
    encoding = encoding_of(head)
    if encoding is None:
        return [replace(one, data=filled_bytes(one.data, secrets)) for one in pieces]
    body = [one for one in pieces if one.stream == "body"]
    raw = b"".join([one.data for one in body])
    plain = http_headers.undo(encoding, raw).body
    done = filled_bytes(plain, secrets) if plain else plain
    if done == plain:
        return pieces
    parts = in_encoding(encoding, done, len(body)) if plain != raw else [done]
    changed = dict(zip(map(id, body), parts, strict=False))
    return [
        replace(one, data=changed.get(id(one), b"")) if one.stream == "body" else one
        for one in pieces
        if one.stream != "body" or id(one) in changed
    ]


def _as_it_is(event: Event) -> Event:
    return event


def _pieces(call: TapedCall, stream: str, data: dict[str, Any], left: int | None) -> list[Piece]:
    raw = as_bytes(data)
    sizes, times = data.get("sizes"), data.get("at_ns") or [0]
    if not isinstance(sizes, list) or sum(sizes) != len(raw):
        at_ns = call.moment(int(times[0]), left=left)
        return [Piece(stream=stream, data=raw, at_ns=at_ns)]
    pieces: list[Piece] = []
    at = 0
    for index, size in enumerate(sizes):
        pieces.append(
            Piece(
                stream=stream,
                data=raw[at : at + size],
                at_ns=call.moment(int(times[min(index, len(times) - 1)]), left=left),
            )
        )
        at += size
    return pieces
