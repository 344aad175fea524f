"""Server-sent events: new events of a running run, changes of the list. Knows the stream format and polling."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.responses import Response, StreamingResponse

from playhead import clock
from playhead.errors import PlayheadError
from playhead.story.event_filter import EventSelection
from playhead.tape.manifest import read_manifest, status_of
from playhead.tape.reader import Tape
from playhead.tape.reading.follow import Follower
from playhead.tape.reading.segment_rows import Row
from playhead.views.web.api.api_responses import Problem, json_bytes
from playhead.views.web.api.event_pages import (
    Cursor,
    as_json,
    parse_cursor,
    selection_of,
    write_cursor,
)
from playhead.views.web.api.run_reading import wanted_of
from playhead.views.web.api.schema_checks import CheckedRequest

if TYPE_CHECKING:
    from playhead.views.web.api.api_app import Desk

_SHORTEST_WAIT = 0.02
_LONGEST_WAIT = 0.25
_LIST_WAIT = 0.5
# Proxies close a connection that is silent for a minute.
_HEARTBEAT_NS = 15_000_000_000
_BATCH = 256
MOST_FOLLOWERS = 256

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def follow_run(desk: Desk, asked: CheckedRequest) -> Response:
    """All events after the cursor, then each as it comes, then `event: end`."""
    path = await anyio.to_thread.run_sync(desk.stories.path, asked.values["id"])
    cursor = parse_cursor(asked.headers.get("last-event-id") or asked.values["after"])
    tape = Tape(path)
    selection = await anyio.to_thread.run_sync(selection_of, tape, wanted_of(asked))
    return _streamed(desk, _run_stream(tape, cursor, selection))


async def follow_list(desk: Desk, _: CheckedRequest) -> Response:
    """A message at once, and one whenever the list of runs has changed."""
    return _streamed(desk, _list_stream(desk))


def _streamed(desk: Desk, stream: AsyncIterator[bytes]) -> Response:
    if desk.followers >= MOST_FOLLOWERS:
        raise Problem(429, f"{MOST_FOLLOWERS} streams are open already.", "Close another page.")
    return StreamingResponse(
        _counted(desk, stream), media_type="text/event-stream", headers=_HEADERS
    )


async def _counted(desk: Desk, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    desk.followers += 1
    try:
        async for part in stream:
            yield part
    finally:
        desk.followers -= 1


class _Telling:
    """A tape that is read in parts while it grows. Its methods read files: call them in threads."""

    def __init__(self, tape: Tape, cursor: Cursor, selection: EventSelection) -> None:
        self._follower = Follower(tape)
        self._cursor = cursor
        self._selection = selection
        self._skip = cursor.skip
        self._positions: dict[str, int] = {}
        self._news: Iterator[Row] | None = None

    @property
    def is_over(self) -> bool:
        return self._follower.is_over

    def part(self) -> bytes | None:
        """Return the next messages; b"" if the filter excluded all new events; None: no news."""
        if self._news is None:
            self._news = self._follower.look()
        messages: list[bytes] = []
        came = False
        for event, _, raw in islice(self._news, _BATCH):
            came = True
            known = self._skip > 0 or event.seq <= self._cursor.positions.get(event.segment, -1)
            self._skip = max(0, self._skip - 1)
            self._positions[event.segment] = event.seq
            # The selection must see skipped events, too: their chunks may follow.
            if self._selection.takes(event) and not known:
                place = write_cursor(self._positions).encode("utf-8", "replace")
                messages.append(b"id: " + place + b"\ndata: " + as_json(raw) + b"\n\n")
        if not came:
            self._news = None
            return None
        return b"".join(messages)


async def _run_stream(
    tape: Tape, cursor: Cursor, selection: EventSelection
) -> AsyncIterator[bytes]:
    # Sent at once, so that the browser knows that it is connected, and when to reconnect.
    yield b"retry: 1000\n\n"
    try:
        async for part in _parts(_Telling(tape, cursor, selection)):
            yield part
        status = await anyio.to_thread.run_sync(_status, tape)
    except PlayheadError:
        status = "gone"  # deleted while it was read
    yield b"event: end\ndata: " + json_bytes({"status": status}) + b"\n\n"


async def _parts(telling: _Telling) -> AsyncIterator[bytes]:
    """Yield messages until the run is over, and a heartbeat now and then if there are none."""
    pause, said = _SHORTEST_WAIT, clock.mono_ns()
    while True:
        part = await anyio.to_thread.run_sync(telling.part)
        if part:
            yield part
        if part is not None:
            pause, said = _SHORTEST_WAIT, clock.mono_ns()
            continue
        if telling.is_over:
            return
        if clock.mono_ns() - said > _HEARTBEAT_NS:
            said = clock.mono_ns()
            yield b": still here\n\n"
        await anyio.sleep(pause)
        pause = min(2 * pause, _LONGEST_WAIT)


def _status(tape: Tape) -> str:
    try:
        return status_of(read_manifest(tape.run))
    except PlayheadError:
        return "interrupted"


async def _list_stream(desk: Desk) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    heard, said = -1, clock.mono_ns()
    while True:
        beat = await anyio.to_thread.run_sync(desk.pulse.look)
        now = clock.mono_ns()
        if beat != heard:
            heard, said = beat, now
            yield b"id: %d\ndata: " % beat + json_bytes({"changed": beat}) + b"\n\n"
        elif now - said > _HEARTBEAT_NS:
            said = now
            yield b": still here\n\n"
        await anyio.sleep(_LIST_WAIT)
