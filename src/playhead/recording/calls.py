"""A call and its taped answer, as they pass through the deck. Data only.

Separate from `deck`, which loads these names when they are first used: a process that makes no calls does not have to
import dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from playhead.events import Effect

# The fact of a call that says what kind of side traffic it is: see `replay.matching.matcher`.
SIDE = "side"

# The boundaries whose outermost calls own the file changes made while they are open.
_OWNERS = frozenset({"tool", "process", "mcp"})

# Not frozen, although no code changes them: a frozen dataclass takes four times as long to make, and every call makes
# several of these.


@dataclass(slots=True, kw_only=True)
class Call:
    """A request across a boundary. `request` is any value; `facts` are further members of the event (`api`,
    `library`, `method`, `url`…).
    """

    boundary: str
    name: str
    request: Any = None
    effect: Effect | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    at: str | None = None
    # The name of a fact that is redacted already; empty: none is.
    redacted: str = ""

    @property
    def owns_changes(self) -> bool:
        """Return whether a replay makes the file changes of this call from the tape.

        It does not where the call starts a process of the program (`own`: a worker of `multiprocessing`): a replay
        runs that process again, and the process changes the files itself.
        """
        return self.boundary in _OWNERS and not self.facts.get("own")

    def event_data(self) -> dict[str, Any]:
        """Return the data of the call's event."""
        data = {"boundary": self.boundary, "name": self.name, "request": self.request, **self.facts}
        if self.effect is not None:
            data["effect"] = self.effect
        return data


class Moment(int):
    """Nanoseconds since a call began, and the place of that moment in the order of the tape.

    The difference to an earlier moment keeps the place: waiting for that long means waiting until the replay
    reaches the place.
    """

    place: Any = None
    # The place where the program learns that it has left the call, for a call that the recorded program left early.
    left: Any = None

    def __sub__(self, earlier: int) -> Moment:
        span = Moment(int(self) - int(earlier))
        span.place, span.left = self.place, self.left
        return span


@dataclass(slots=True, kw_only=True)
class Piece:
    """A piece of a taped stream, as it came."""

    stream: str
    data: bytes
    at_ns: int


@dataclass(slots=True, kw_only=True)
class Taped:
    """An answer from the tape: how the recorded call ended, and everything that came before its end.

    If the run was killed while the call was in flight, `how` is `cut`, and `dies` ends the process in the same way: the
    crossing calls it when the boundary says that the stream is over.
    """

    how: str
    value: Any = None
    error: Any = None
    head: Any = None
    pieces: Sequence[Piece] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    took_ns: int = 0
    # The time of the head; None: it came together with the first piece.
    head_ns: int | None = None
    # The frozen form of `value`, for boundaries that rebuild types of their own.
    frozen: Any = None
    # The frozen form of `error`: its state may hold objects that only the boundary can make.
    frozen_error: Any = None
    # How this answer was matched: rung and taped call; written to the replay's own tape.
    match: Mapping[str, Any] = field(default_factory=dict)
    dies: Callable[[], None] | None = None
    # Whether it dies as soon as the call is on the replay's tape: nothing of the answer had come.
    ends_at_once: bool = False
    # Makes the taped answer available again: it came too late for the program, which will ask again.
    give_back: Callable[[], None] | None = None
    # When the call was made, in the time of the tape.
    began_ns: int = 0
    # On the replay's own tape the call is written without request and answer: both are on the recorded tape.
    quiet: bool = False
    # The call made no further calls: a watched store can be changed again in the same way.
    is_alone: bool = False
    # Output that processes inside the call wrote to the streams of the command: a server that logs to stderr.
    printed: Sequence[Piece] = ()
    # For a connection to the program of which one request is replayed: the number of the request in the connection.
    request: int | None = None

    @property
    def first_ns(self) -> int:
        """Return the time when the answer began. Where the order of the tape is not kept, a head comes with the piece
        that follows it, or with the end.
        """
        if type(self.head_ns) is Moment:
            return self.head_ns
        for piece in self.pieces:
            if piece.stream == "body":
                return piece.at_ns
        return self.took_ns
