"""Follow one SQL statement: a call from the client's first message until the server is ready for the next statement.

Knows the messages of one statement and its taped answer; does not know sockets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.hooks.sql import pgwire
from playhead.recording.adapter import Adapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from playhead.hooks.sql.pgwire import Message
    from playhead.recording.calls import Taped
    from playhead.recording.crossing import Crossing


class SqlError(Exception):
    """Holds an error of the server for the tape: SQLSTATE and message. The program gets the client's own exception."""


class Passing(Adapter):
    """Gives the crossing to the relay, which knows when it ends."""

    __slots__ = ()
    streams = True

    def live(self, crossing: Crossing) -> Crossing:
        return crossing

    def serve(self, crossing: Crossing) -> Crossing:
        return crossing

    def observe(self, crossing: Crossing, result: Any) -> Any:
        return result


class Cycle:
    """A call: from the first message of a statement until the server is ready for the next one."""

    def __init__(self, crossing: Crossing, waits_for: int, *, is_extended: bool = False) -> None:
        self.crossing = crossing
        # How many messages "ready for the next statement" the server will still send.
        self.waits_for = waits_for
        self.error: dict[str, str] | None = None
        self.tag: str | None = None
        self.is_left = False
        # Whether the statement was sent in parts (parse, bind, execute).
        self.is_extended = is_extended
        taped = crossing.taped
        self.script = None if taped is None else _script(taped)
        self.position = 0
        self._reached = -1

    def points(self) -> Iterator[int]:
        """Yield the pieces of the taped answer that the client has received, but whose places it has not reached."""
        taped = self.crossing.taped
        if taped is None or not self.script or not self.position:
            return
        last = self.script[self.position - 1][2]
        for index in range(self._reached + 1, last + 1):
            if taped.pieces[index].stream == "received":
                yield index
        self._reached = max(self._reached, last)

    def note(self, message: Message) -> None:
        kind, content = message
        if kind == b"Z":
            self.waits_for -= 1
        elif kind == b"G" and self.is_extended:
            self.waits_for -= (
                1  # the server ignores the end of the statement, and the client sends another one
            )
        elif kind == b"E":
            self.error = pgwire.error_fields(content)
        elif kind == b"C":
            self.tag = pgwire.text(content.rstrip(b"\0"))

    def end(self) -> None:
        if self.error is not None:
            error = self.error
            self.crossing.raised(SqlError(f"{error.get('C', '')} {error.get('M', '')}".strip()))
        else:
            self.crossing.returned(self.tag)


def _script(taped: Taped) -> list[tuple[str, bytes, int]]:
    """Return the lines of both sides in their order, each with the index of its piece on the tape."""
    return [
        (piece.stream, line, index)
        for index, piece in enumerate(taped.pieces)
        if piece.stream in ("sent", "received")
        for line in piece.data.splitlines(keepends=True)
    ]
