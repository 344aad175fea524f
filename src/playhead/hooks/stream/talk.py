"""Record one conversation over a connection, and answer it from the tape in a replay.

The bytes that the program sends are one stream: a piece of the answer is due when all bytes that preceded it on the
tape have been sent again. Knows bytes in both directions and their order; does not know sockets or event loops.
"""

from __future__ import annotations

import os

from playhead.errors import Divergence
from playhead.hooks.stream.protocols import protocol_of
from playhead.recording import order_slot
from playhead.recording.adapter import Adapter
from playhead.recording.crossing import HEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from playhead.recording.calls import Taped
    from playhead.recording.crossing import Crossing
    from playhead.recording.recorder import Recorder

_FIRST = 256
# How many bytes of a differing message are shown, and how many of these precede the difference.
_MOST_SHOWN, _SAME_SHOWN = 80, 30
# Conversations that have not ended: a program may exit without closing its connections.
_open: set[Talk] = set()
_watched: set[Recorder] = set()


class Talk:
    """The program's side of a conversation. Without a taped answer it only reports."""

    def __init__(self, crossing: Crossing) -> None:
        self.crossing = crossing
        self._first = {"sent": b"", "received": b""}
        self._ended = False
        # Whether the run has ended: objects that are deleted after it may still use their connection.
        self.is_over = False
        self.script = None if crossing.taped is None else TalkScript(crossing.taped)
        recorder = crossing.deck.recorder
        if recorder not in _watched:
            _watched.add(recorder)
            recorder.last_words.append(end_all)
        _open.add(self)

    def sent(self, data: bytes) -> None:
        """Report data that the program sends. In a replay, raise a Divergence if it differs from the tape."""
        if not data or self.is_over:
            return
        self._note("sent", data)
        if self.script is None:
            return
        redactor = self.crossing.deck.recorder.redactor
        cleaned = data if redactor is None else redactor.clean_bytes(data)
        if not self.script.position:
            self._choose(cleaned)
        problem = self.script.take(cleaned)
        if problem is not None:
            call = self.crossing.call
            self.crossing.deck.part(call, "stream", f"{call.name}: {problem}")
            raise Divergence(f"{call.name}: {problem}")

    async def connected(self) -> None:
        """Report that the event loop has learnt that the connection is made. This has its own place in the order."""
        taped = self.crossing.taped
        if taped is None:
            self.crossing.head({"connected": True}, clean=True)
        elif taped.head is not None:
            await self.crossing.reach_async(HEAD)

    def received(self, data: bytes) -> None:
        if data and not self.is_over:
            self._note("received", data)

    def _note(self, stream: str, data: bytes) -> None:
        if len(self._first[stream]) < _FIRST:
            if not self._first["sent"] and stream == "sent" and data.startswith(b"SSH-"):
                self.crossing.deck.unanswerable(
                    f"SSH to {self.crossing.call.name}",
                    "its keys are made in C, where no hook sees them",
                )
            self._first[stream] += data[:_FIRST]
        self.crossing.chunk(data, stream)

    def _choose(self, begin: bytes) -> None:
        """Choose the taped conversation that begins with this data. Connections to one address are alike until the
        program sends something.
        """
        before = self.crossing.taped
        self.crossing.deck.rematch(
            self.crossing, lambda taped: TalkScript(taped).begins_with(begin)
        )
        taped = self.crossing.taped
        if taped is not None and taped is not before:
            # The conversations are equal up to here: greetings that were already played are not played again.
            self.script = TalkScript(taped, played=0 if self.script is None else self.script.played)

    def end(self, *, by: str, error: BaseException | None = None) -> None:
        """Report the end. `by` is the side that closed the connection (`agent` or `peer`), or `exit`."""
        if self._ended:
            return
        self._ended = True
        _open.discard(self)
        if self.crossing.taped is not None:
            order_slot.come_to(self.crossing.taped.took_ns)
        protocol = protocol_of(self._first["sent"], self._first["received"])
        if error is not None:
            self.crossing.failed(error, protocol=protocol)
        else:
            self.crossing.returned(closed_by=by, protocol=protocol)


class TalkScript:
    """A taped conversation, and how far the replay has played it."""

    def __init__(self, taped: Taped, *, played: int = 0) -> None:
        """`played` is the number of pieces of the answer that the program already has."""
        self.pieces: list[tuple[int, bytes, int]] = []
        sent = bytearray()
        for index, piece in enumerate(taped.pieces):
            if piece.stream == "sent":
                sent += piece.data
            elif piece.stream == "received":
                # Its index on the tape, its data, and how much had been sent by then.
                self.pieces.append((index, piece.data, len(sent)))
        self._sent = bytes(sent)
        self.position = 0
        self.played = played
        self.closes = taped.facts.get("closed_by") == "peer"
        self.is_cut = taped.how == "cut"

    def begins_with(self, data: bytes) -> bool:
        length = min(len(data), len(self._sent))
        return length > 0 and self._sent[:length] == data[:length]

    def take(self, data: bytes) -> str | None:
        """Take data that the program sends. Return None, or a text that says how it differs from the tape."""
        expected = self._sent[self.position : self.position + len(data)]
        if expected != data:
            if len(expected) < len(data) and data.startswith(expected):
                return f"the program sends more than its tape has: {_short(data[len(expected) :])}"
            pairs = zip(data, expected, strict=False)
            at = next((at for at, (a, b) in enumerate(pairs) if a != b), len(expected))
            low = max(0, at - _SAME_SHOWN)
            return (
                f"the program sends {_short(data, low)}, and its tape has {_short(expected, low)}"
            )
        self.position += len(data)
        return None

    @property
    def due(self) -> tuple[int, bytes] | None:
        """The index on the tape and the data of the next piece; None unless all data before it has been sent."""
        if self.played >= len(self.pieces):
            return None
        index, data, after = self.pieces[self.played]
        return (index, data) if self.position >= after else None

    def advance(self) -> None:
        self.played += 1

    @property
    def is_over(self) -> bool:
        """Whether all pieces have been played, and the program has sent all that it sent on the tape."""
        return self.played >= len(self.pieces) and self.position >= len(self._sent)


class ConnectAdapter(Adapter):
    """Opens a connection: `connect` makes a real one, `serve_to` one to the tape."""

    __slots__ = ("_connect", "_serve_to")

    streams = True

    def __init__(self, connect: Callable[[], Any], serve_to: Callable[[Talk], Any]) -> None:
        self._connect = connect
        self._serve_to = serve_to

    def live(self, crossing: Crossing) -> Talk:
        self._connect()
        return Talk(crossing)

    def observe(self, crossing: Crossing, result: Talk) -> Talk:
        return result

    def serve(self, crossing: Crossing) -> Talk:
        taped = crossing.taped
        if taped is not None and taped.how == "raised" and isinstance(taped.error, BaseException):
            crossing.raised(taped.error)
            raise taped.error
        talk = Talk(crossing)
        self._serve_to(talk)
        return talk


def end_all() -> None:
    """Report the conversations that are still open when the process ends."""
    for talk in list(_open):
        talk.end(by="exit")
        talk.is_over = True


def _short(data: bytes, begin: int = 0) -> str:
    shown = repr(data[begin : begin + _MOST_SHOWN])
    return f"{'…' if begin else ''}{shown}{'…' if len(data) > begin + _MOST_SHOWN else ''}"


def _start_anew() -> None:
    _open.clear()  # the parent reports them


os.register_at_fork(after_in_child=_start_anew)
