"""Tell other processes of a replay which connections a server of the same run has answered.

A script starts a server in Python, and clients. A replay runs the server again, but its clients get their answers from
the tape, at once: the script would kill the server before it has answered anything. So a client ends only when the
connections that servers had answered by then are answered again. Servers report each of them by a line in a file
beside the tape of the replay. Clients in Python wait here, and others are played by `answer_order`. Knows taped
connections; not sockets.
"""

from __future__ import annotations

import os
import posix
from collections.abc import Iterator
from typing import TYPE_CHECKING

from playhead import clock
from playhead.recording import lanes
from playhead.tape.store import ANSWERED_CONNECTIONS

if TYPE_CHECKING:
    from playhead.replay.matching.taped import TapedCall, TapedRun

_PIECE = 64 * 1024
_NAP_S = 0.01
# A server that has reported nothing for this long is not waited for: it may have changed. It may also have to load.
_PATIENCE_NS = 20_000_000_000
_NOBODY = "nobody"


def report(folder: object, ref: object) -> None:
    """Report that this connection of the tape is answered."""
    try:
        fd = posix.open(
            f"{folder}/{ANSWERED_CONNECTIONS}",
            os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC,
            0o600,
        )
    except OSError:
        return  # waits are limited to a few seconds
    try:
        posix.write(fd, f"{ref}\n".encode())
    finally:
        posix.close(fd)


class AnsweredConnections:
    """The reports of all servers of a replay."""

    def __init__(self, folder: object) -> None:
        self._path = f"{folder}/{ANSWERED_CONNECTIONS}"
        self._read = 0

    def new(self) -> list[str]:
        """Return the connections that were reported since the last look."""
        try:
            fd = posix.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return []
        try:
            found = b""
            while piece := posix.pread(fd, _PIECE, self._read + len(found)):
                found += piece
        finally:
            posix.close(fd)
        whole = found.rpartition(b"\n")[0]
        if not whole:
            return []
        self._read += len(whole) + 1
        return whole.decode("utf-8", "replace").split("\n")


def taped_connections(calls: list[TapedCall]) -> Iterator[tuple[int, str]]:
    """Yield the moment at which each connection of the tape had its answer, and the call."""
    for call in calls:
        if call.boundary != "input" or not call.name.startswith("connection to port"):
            continue
        sent = [one.data.get("at_ns") for one in call.chunks if one.data.get("stream") == "sent"]
        if sent and isinstance(sent[-1], list):
            yield call.event.mono + int(sent[-1][-1]), call.ref


def await_servers(recording: TapedRun, folder: object) -> None:
    """Wait at the end of a process until servers in other processes have answered what they had answered by then."""
    own = {one for one, start in recording.segments.items() if start.lane == lanes.MAIN.name}
    end = min((recording.ends[one] for one in own & recording.ends.keys()), default=0)
    missing = {
        ref
        for moment, ref in taped_connections(recording.calls)
        if moment < end and ref.rpartition(":")[0] not in own
    }
    reports = AnsweredConnections(folder)
    until = clock.mono_ns() + _PATIENCE_NS
    while missing and clock.mono_ns() < until:
        if new := reports.new():
            missing.difference_update(new)
            until = 0 if _NOBODY in new else clock.mono_ns() + _PATIENCE_NS
        else:
            clock.sleep(_NAP_S)
    if missing and until:
        # A changed server. Once for all clients: each of them would wait.
        report(folder, _NOBODY)
