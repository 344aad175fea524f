"""The requests that clients sent to a recorded server, and a recording reduced to one of them.

A request is a turn that a hook of inbound connections wrote. Its calls, points and readings are those of its lane and
of the lanes below it. A server that handles a whole connection in one task (aiohttp.web, hypercorn) has them in the
lane of the connection: there, those from the beginning of the request up to the next one count.

Everything that belongs to no request (the start of the program, its timers, its end) stays. Knows taped runs; does not
know how a replay sends a request (`hooks/input`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from playhead.errors import UsageError
from playhead.events import BY_LIBRARY, TURN_END, Event
from playhead.recording import points

if TYPE_CHECKING:
    from playhead.replay.matching.taped import TapedRun

# The member of a turn's data that says which connection it belongs to (see `hooks/input/request_turns`).
INBOUND = "inbound"
_NEVER = sys.maxsize


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundRequest:
    """One request. `number` counts all requests of the run from 1, in the order in which they began."""

    number: int
    # The reference of its turn.
    ref: str
    name: str
    # The reference of the call of its connection.
    connection: str
    lane: str
    began: int
    # When its first byte came, and that of the next request of the same connection, since the connection began.
    since_ns: int = 0
    until_ns: int = _NEVER
    # The number of its calls, and whether its whole answer is on the tape; known after `keep_request`.
    calls: int = 0
    answered: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "name": self.name,
            "calls": self.calls,
            "answered": self.answered,
        }

    @property
    def index(self) -> int:
        """Return its number in its connection, from 1."""
        number = self.lane.rpartition("/r")[2]
        return int(number) if number.isdecimal() else 1

    @property
    def connection_lane(self) -> str:
        return self.lane.rpartition("/")[0]


class InboundRequests:
    """All requests of a recording."""

    def __init__(self, turns: list[Event]) -> None:
        found = [one for event in turns if (one := _request(event)) is not None]
        found.sort(key=lambda one: one.began)
        next_of: dict[str, int] = {}
        self.all: list[InboundRequest] = []
        for at in range(len(found), 0, -1):
            one = found[at - 1]
            until_ns = next_of.get(one.connection, _NEVER)
            self.all.append(replace(one, number=at, until_ns=until_ns))
            next_of[one.connection] = one.since_ns
        self.all.reverse()
        self._of_connection: dict[str, list[InboundRequest]] = {}
        for one in self.all:
            self._of_connection.setdefault(one.connection_lane, []).append(one)

    @property
    def numbers(self) -> dict[str, int]:
        """Return the number of each request by the reference of its turn."""
        return {one.ref: one.number for one in self.all}

    def get(self, number: int) -> InboundRequest:
        if not self.all:
            raise UsageError(
                "This run has no inbound requests. --request replays one request of a recorded HTTP server."
            )
        if not 1 <= number <= len(self.all):
            raise UsageError(
                f"This run has no request {number}: it has {len(self.all)}. `playhead show RUN` lists them."
            )
        return self.all[number - 1]

    def of_connection(self, request: InboundRequest) -> list[InboundRequest]:
        """Return all requests of the connection of this one."""
        return self._of_connection[request.connection_lane]

    def at(self, lane: str, mono: int) -> InboundRequest | None:
        """Return the request that an event of this lane at this time belongs to; None if to none."""
        parts = lane.split("/")
        for length in range(len(parts), 0, -1):
            among = self._of_connection.get("/".join(parts[:length]))
            if among is None:
                continue
            below = "/".join(parts[: length + 1])
            for one in among:
                if one.lane == below:
                    return one
            return next((one for one in reversed(among) if one.began <= mono), among[0])
        return None


def _request(event: Event) -> InboundRequest | None:
    """Return the request that a turn stands for. A tape is untrusted data: its members may be anything."""
    data: Any = event.data
    place = data.get(INBOUND) if isinstance(data, dict) else None
    connection = event.absolute(place.get("connection")) if isinstance(place, dict) else None
    since_ns = place.get("since_ns") if isinstance(place, dict) else None
    if connection is None or "/" not in event.lane or type(since_ns) is not int:
        return None
    return InboundRequest(
        number=0,
        ref=event.ref,
        name=str(data.get("name")),
        connection=connection,
        lane=event.lane,
        began=event.mono,
        since_ns=since_ns,
    )


def keep_request(recording: TapedRun, number: int) -> InboundRequest:
    """Reduce the recording to this request and to everything that belongs to no request. UsageError: there is no such
    request.
    """
    requests = InboundRequests(recording.turns)
    chosen = requests.get(number)
    first = requests.all[0].began
    connections = {one.connection for one in requests.all}
    others: set[tuple[str, int]] = set()
    ends: tuple[str, int, int] | None = None
    count = 0
    for call in recording.calls:
        event = call.event
        if call.ref == chosen.connection:
            call.request_alone = chosen
            took = None if call.outcome is None else call.outcome.data.get("took_ns")
            ends = (event.segment, event.seq, took if type(took) is int else -1)
            continue
        owner = requests.at(event.lane, event.mono)
        count += owner is chosen
        is_other = call.ref in connections or (owner is not None and owner is not chosen)
        if is_other:
            others.add((event.segment, event.seq))
            # A library that is loaded by the first request makes its calls then. All other calls of other requests
            # answer no call of this replay.
            call.served = not event.data.get(BY_LIBRARY)
        # Whether background work is done at all may depend on the other requests.
        call.is_optional = is_other or (owner is None and event.mono >= first)
    recording.ambient = [_own_readings(event, requests, chosen) for event in recording.ambient]
    own = _OwnPoints(requests, chosen, others, ends)
    recording.points = [own.of(event) for event in recording.points]
    answered = any(_ended(event) == chosen.ref for event in recording.turns)
    return replace(chosen, calls=count, answered=answered)


def _ended(event: Event) -> str | None:
    """Return the turn that this event ends with a result; None if it ends none."""
    if event.kind != TURN_END or not isinstance(event.data, dict):
        return None
    return event.absolute(event.data.get("turn")) if event.data.get("how") == "returned" else None


def _own_readings(event: Event, requests: InboundRequests, chosen: InboundRequest) -> Event:
    """Return readings of the clock and of entropy without those of other requests."""
    rows = event.data.get("readings") if isinstance(event.data, dict) else None
    if not isinstance(rows, list):
        return event
    kept = [row for row in rows if _is_kept(requests, chosen, row, event.mono)]
    return (
        event if len(kept) == len(rows) else replace(event, data={**event.data, "readings": kept})
    )


def _is_kept(requests: InboundRequests, chosen: InboundRequest, row: Any, mono: int) -> bool:
    lane = row[0] if isinstance(row, list) and row else None
    owner = requests.at(lane, mono) if isinstance(lane, str) else None
    return owner is None or owner is chosen


class _OwnPoints:
    """Leaves out the points of other requests."""

    def __init__(
        self,
        requests: InboundRequests,
        chosen: InboundRequest,
        others: set[tuple[str, int]],
        connection: tuple[str, int, int] | None,
    ) -> None:
        """`others` are the calls of other requests. `connection` is the call of the request's connection, and when it
        ended.
        """
        self._requests = requests
        self._chosen = chosen
        self._others = others
        self._connection = connection
        # When the first byte came over the connection.
        self._first_ns = requests.of_connection(chosen)[0].since_ns
        # Points of a lane are numbered by kind. How many of them were left out so far.
        self._left_out: dict[tuple[str, str], int] = {}

    def of(self, event: Event) -> Event:
        rows: list[tuple[Any, ...]] = []
        for now, loop, turn, *what in points.unpack(event.data):
            kept = (
                self._call(event.segment, what) if type(what[0]) is int else self._lane(now, what)
            )
            if kept is not None:
                rows.append((now, (loop, turn), *kept))
        return replace(event, data=points.pack(rows) if rows else {})

    def _call(self, segment: str, what: list[Any]) -> list[Any] | None:
        if (segment, what[0]) in self._others:
            return None
        if self._connection is None or (segment, what[0]) != self._connection[:2]:
            return what
        # The connection begins and ends as on the tape. In between, only the pieces of this request count.
        at_ns = what[1]
        is_own = self._chosen.since_ns <= at_ns < self._chosen.until_ns
        is_start = at_ns < self._first_ns
        return what if is_own or is_start or at_ns == self._connection[2] else None

    def _lane(self, now: int, what: list[Any]) -> list[Any] | None:
        lane, kind = what[0], what[1]
        if type(lane) is not str or type(kind) is not str or len(what) < 3:
            return what
        name, _, rest = kind.partition(":")
        if name == points.PRINTED:
            return None  # other processes do not print what they printed then
        if name == points.SIGNAL:
            return [*what[:3], []]  # the main thread takes fewer steps before it
        counted = (lane, f"{points.TIMER}:{rest}" if name == points.CANCELLED else kind)
        owner = self._requests.at(lane, now)
        if owner is not None and owner is not self._chosen:
            self._left_out[counted] = self._left_out.get(counted, 0) + 1
            return None
        if name != points.LOCK and type(what[2]) is int:
            return [lane, kind, what[2] - self._left_out.get(counted, 0), *what[3:]]
        return what
