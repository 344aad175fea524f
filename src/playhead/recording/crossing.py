"""One call in progress: written before it is performed, its stream as it arrives, its outcome when known.

Knows what of a call is written and when, and when a taped answer may reach the client; does not know who
answers the call (`deck`).

`reach` and its two variants are the only place where a replay hands a point of a taped answer (its head, a
piece, its end) to the program, so the order of a replay is enforced there.
"""

from __future__ import annotations

from playhead import events
from playhead.clock import mono_ns
from playhead.errors import Divergence
from playhead.recording import lanes, pacing, points, where
from playhead.recording.chunks import LARGEST_TOGETHER, MESSAGES, ChunkBuffer, streams_of
from playhead.recording.encoder import NewEvent
from playhead.recording.tool_facts import LARGEST_HEARD
from playhead.redact.encoded_bodies import encoding_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Token
    from typing import Any

    from playhead.events import Ref
    from playhead.recording.calls import Call, Taped
    from playhead.recording.chunks import Held
    from playhead.recording.deck import Deck

inside = lanes.inside

# Points of a taped answer besides its pieces, which are numbered by their index in `taped.pieces`.
HEAD, END = -1, -2
# All of an answer that came in one piece: it is handed to the client at once.
WHOLE = -3

# How much longer than on the tape a call that the agent abandoned there may wait to be abandoned again. The agent's own
# timeout or race happens again; but the reason to leave may be gone, and a replay must never hang.
PATIENCE_S = 10.0


class Crossing:
    """One call in progress: written before it is performed, its stream as it arrives, then its outcome."""

    __slots__ = (
        *("_buffer", "_ended", "_head", "_heard", "_mark", "_outside", "_segment", "_shown_ns"),
        *("_started", "call", "deck", "instead", "is_inner", "seq", "taped"),
    )

    def __init__(
        self,
        deck: Deck,
        call: Call,
        taped: Taped | None = None,
        instead: bytes | None = None,
    ) -> None:
        self.deck = deck
        self.call = call
        self.taped = taped
        # The body to send in place of the one that the program made.
        self.instead = instead
        # Whether it is inside a tool: a replay does not come to its points.
        self.is_inner = lanes.printing.get() is not None
        self._ended = False
        # The taped moment of the last point that the client got.
        self._shown_ns = 0
        self._head: Any = None
        self._heard: list[bytes] | None = [] if call.boundary == "llm" else None
        self._buffer: ChunkBuffer | None = None
        # The context before it was entered; it may be entered again before it is left.
        self._outside: tuple[Token[Any], Token[Any], Any, Any] | None = None
        recorder = deck.recorder
        self._started = mono_ns()
        at = call.at or where.asked(3)
        data = call.event_data() if taped is None else _data_of(call, taped)
        # The event of a quiet call has no facts, so it lacks the one that is redacted already.
        redacted = call.redacted if taped is None or not taped.quiet else ""
        entry = NewEvent(events.CALL, data, at, None, deck.cause_of(call), redacted)
        self.seq: Ref | None = recorder.append(entry)
        self._segment = recorder.segment
        # Files that change until the end belong to this call: see `workspace.watch.call_marks`.
        self._mark = None
        if deck.marks is not None and self.seq is not None:
            name = f"{self._segment}:{self.seq}"
            if taped is None:
                self._mark = deck.marks.open(call, inside.get(), name)
            else:
                deck.marks.serve(taped.match.get("of"), name)

    @property
    def started_ns(self) -> int:
        """The monotonic time from which the moments of this call are counted."""
        return self._started

    @property
    def ref(self) -> Ref | None:
        """Return the reference to the call's event. In a child that was forked since, this is a name that is valid
        there too.
        """
        if self.seq is None or self.deck.recorder.segment == self._segment:
            return self.seq
        self._buffer = None  # the parent writes the buffered pieces
        return f"{self._segment}:{self.seq}"

    def head(self, value: Any, *, clean: bool = False, short: bool = False) -> None:
        """Record the part before the body, status and headers, as soon as it is known.

        `clean`: plain JSON without secrets. `short`: the head of a small answer that is about to be complete, so it may
        wait as long as pieces of a stream do.
        """
        self._head = value
        if self.taped is not None and self.taped.quiet:
            return
        recorder = self.deck.recorder
        ref = self.seq if recorder.segment is self._segment else self.ref
        if ref is None:
            return  # the call itself was lost, and that is counted
        if self._buffer is not None and self._buffer.sent_encoding is not None:
            self._buffer.end_sent()
        now = mono_ns()
        at_ns = now - self._started
        if not self.is_inner:
            points.note_call(ref, at_ns, now, recorder)
        data = {"stream": "head", "value": value, "at_ns": [at_ns]}
        if short and clean and self._buffer is None and recorder.level == "full":
            self._buffer = ChunkBuffer(
                recorder,
                ref,
                self._started,
                data,
                is_inner=self.is_inner,
                encoding=encoding_of(value),
            )
            return
        recorder.append(NewEvent(events.CHUNK, {"call": ref, **data}, '""', ref, None, clean))

    def whole(self, head: Any, body: bytes, members: dict[str, Any]) -> None:
        """Record an answer that came all at once: a clean head, a body, and how it returned."""
        taped, recorder = self.taped, self.deck.recorder
        is_plain_case = taped is None and self._buffer is None and recorder.level == "full"
        if not is_plain_case or len(body) > LARGEST_TOGETHER:
            self.head(head, clean=True)
            self.chunk(body)
            self.end("returned", members)
            return
        self._head = head
        if self._heard is not None:
            self._heard.append(body)
        now = mono_ns()
        when = now - self._started
        if self.seq is not None and not self.is_inner:
            points.note_call(self.seq, when, now, recorder)
        piece = {"stream": "head", "value": head, "at_ns": [when]}
        self.end("returned", members, (piece, "body", [(body, when)] if body else []))

    def chunk(self, piece: bytes, stream: str = "body") -> None:
        """Record a piece of a stream, as it came."""
        recorder = self.deck.recorder
        ref = self.seq if recorder.segment is self._segment else self.ref
        if ref is None or (not piece and stream not in MESSAGES):
            return
        if self.taped is not None and self.taped.quiet:
            return
        buffer = self._buffer
        if buffer is None:
            buffer = self._buffer = ChunkBuffer(
                recorder,
                ref,
                self._started,
                is_inner=self.is_inner,
                encoding=encoding_of(self._head),
            )
        if self._head is None and stream == "sent" and not buffer.sends_body:
            # The body of a request, in pieces. Messages of a socket come after its head.
            buffer.sends_body = True
            buffer.sent_encoding = _encoding_sent(self.call)
        buffer.add(stream, bytes(piece))
        if self._heard is not None and stream == "body":
            self._heard.append(piece)
            if buffer.total > LARGEST_HEARD:
                # Too large to be decoded: an endless stream must not accumulate in memory.
                self._heard = None

    def flush(self) -> None:
        """Write the pieces that wait for further pieces: no later event must be on the tape without them."""
        if self._buffer is not None:
            self._buffer.flush()

    def moment(self, *, is_shown: bool = False) -> int:
        """Note the place of something in this call that becomes visible without passing through the program. Return the
        nanoseconds since the call began. `is_shown`: a replay shows it, although it serves the enclosing call as a
        whole.
        """
        now = mono_ns()
        if self.seq is not None and (is_shown or not self.is_inner):
            points.note_call(self.seq, now - self._started, now, self.deck.recorder)
        return now - self._started

    def returned(self, value: Any = None, **facts: Any) -> None:
        self.end("returned", {"value": value, **facts})

    def raised(self, error: BaseException, **facts: Any) -> None:
        self.end("raised", {"error": error, **facts})

    def failed(self, error: BaseException, **facts: Any) -> None:
        """Record that the call ended with an error. A cancellation is the agent's own decision: it stopped waiting."""
        if is_cancellation(error):
            self.left(**facts)
        else:
            self.raised(error, **facts)

    def cut(self, error: BaseException | None = None, **facts: Any) -> None:
        """Record that the other side broke off in the middle."""
        self.end("cut", {"error": error, **facts})

    def left(self, **facts: Any) -> None:
        """Record that the agent stopped listening before the end."""
        self.end("left", facts)

    def reach(self, point: int) -> None:
        """Wait until the replay is at this point of the taped answer: HEAD, the index of a piece, END, or
        WHOLE for all of them. The caller then hands it to the client.
        """
        pacing.rest(self._wait_ns(point))

    async def reach_async(self, point: int) -> None:
        """Wait like `reach`, while other tasks run."""
        await pacing.rest_async(self._wait_ns(point))

    async def reach_moment_async(self, at_ns: int) -> None:
        """Wait like `reach_async` for a moment that is a fact of the taped call."""
        await pacing.rest_async(at_ns - self._shown_ns)

    def reach_later(self, point: int) -> float:
        """Return after how many seconds a timer must fire, for callers that wait with a timer of the event loop."""
        return pacing.seconds(self._wait_ns(point))

    def reach_last(self) -> None:
        """Wait for the end when the client asks for more than the last piece, if the tape knows the place of the end
        among the other points. If not, the end comes with the last piece.
        """
        pacing.rest_to_end(self._wait_ns(END))

    async def reach_last_async(self) -> None:
        await pacing.rest_to_end_async(self._wait_ns(END))

    async def close_async(self) -> None:
        """Note that the client has closed the answer; in a replay, wait for that moment. Closing may take several turns
        of the event loop, and the program learns only then that the answer has ended. If it left the answer before the
        end, that has a place of its own, which comes first.
        """
        if self.taped is not None and self.taped.how == "left":
            await self.reach_last_async()
        await pacing.close_async()

    async def abandon_async(self, patience_s: float) -> None:
        """Wait until the agent leaves a call that it left in the recorded run, for a limited time."""
        if self.taped is None or not await pacing.abandon(self.taped.took_ns):
            await pacing.sleep(patience_s)

    async def reach_end_async(self, patience_s: float = PATIENCE_S) -> None:
        """Wait for the taped end. If the agent abandoned the recorded call, wait until it does so again; raise a
        Divergence if it does not, because there is no answer.
        """
        taped = self.taped
        if taped is None or taped.how != "left":
            await self.reach_async(END)
            return
        try:
            await self.abandon_async(taped.took_ns / 1e9 + patience_s)
        except BaseException:
            self.left()
            raise
        raise Divergence(
            f"On the tape the agent gave up waiting for {self.call.name} after "
            f"{taped.took_ns / 1e9:.1f} s; now it keeps waiting, and the tape has no answer."
        )

    def _wait_ns(self, point: int) -> int:
        """Return the taped time between the last point that the client got and this one."""
        taped = self.taped
        if taped is None:
            raise AssertionError("only a taped answer has points to reach")
        if point == END:
            at = taped.took_ns
        elif point in (HEAD, WHOLE):
            at = taped.first_ns
        else:
            at = taped.pieces[point].at_ns
        wait = at - self._shown_ns
        if wait > 0:
            self._shown_ns = at
        return wait

    def __enter__(self) -> Crossing:  # noqa: PYI034  (typing.Self came with 3.11)
        """While inside, further crossings are children of this one."""
        ref = self.seq if self.deck.recorder.segment is self._segment else self.ref
        printed = None
        if self.call.boundary == "tool" and lanes.printing.get() is None:
            printed = (lanes.printing.set(self), lanes.own_thread(None))
        enclosed = lanes.enclosing.set(ref)
        around = (*inside.get(), self.call)
        self._outside = (enclosed, inside.set(around), printed, self._outside)
        return self

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        if self._outside is None:
            raise AssertionError("only an entered crossing can be left")
        around, calls, printed, self._outside = self._outside
        try:
            lanes.enclosing.reset(around)
            inside.reset(calls)
            if printed is not None:
                lanes.printing.reset(printed[0])
                lanes.own_thread(printed[1])
        except ValueError:
            return  # the host left the block in another context: nothing to undo

    def end(self, how: str, members: dict[str, Any], held: Held | None = None) -> None:
        """Record the end of the call. `members` are further members of its event: value, error, facts. `held` is an
        answer that is not on the tape yet.
        """
        if self._ended:
            return
        self._ended = True
        if self._mark is not None:
            self._mark.end()  # before the outcome, which tells readers that the changes are on the tape
        taped, deck = self.taped, self.deck
        if taped is not None and deck.marks is not None:
            deck.marks.finish(taped.match.get("of"))
        if taped is not None and taped.quiet:
            if taped.dies is not None:
                taped.dies()
            return
        if deck.live:
            deck.live.discard(self)
        recorder = deck.recorder
        ref = self.seq if recorder.segment is self._segment else self.ref
        if ref is None:
            return
        now = mono_ns()
        took, counts = now - self._started, None
        if not self.is_inner:
            points.note_call(ref, took, now, recorder)
        if self._buffer is not None:
            held = self._buffer.finish()
            counts = (self._buffer.count, self._buffer.total)
        elif held is not None:
            counts = (len(held[2]), sum([len(piece) for piece, _ in held[2]]))
        if taped is not None and taped.dies is not None:
            taped.dies()
        data: dict[str, Any] = {"call": ref, "how": how, "took_ns": took}
        if counts is not None:
            data["chunks"], data["bytes"] = counts
        if held is not None:
            encoding = encoding_of(self._head) if self._buffer is None else self._buffer.encoding
            data["streams"] = streams_of(recorder, held, encoding)
        # Numbers, and streams that are redacted already, hold no secrets; any other member may.
        redacted = True
        for name, item in members.items():
            if item is not None or name == "value":
                data[name] = item
                if item is not None and type(item) is not int:
                    redacted = False
        recorder.append(NewEvent(events.OUTCOME, data, '""', ref, None, redacted))
        if self._heard:
            deck.hear(ref, self.call, self._head, b"".join(self._heard))


def _data_of(call: Call, taped: Taped) -> dict[str, Any]:
    """Return the data of a served call's event: the call, and how its answer was found."""
    if taped.quiet:
        return {"boundary": call.boundary, "name": call.name, "match": taped.match}
    return {**call.event_data(), "match": dict(taped.match)} if taped.match else call.event_data()


def is_cancellation(error: BaseException) -> bool:
    """Return whether asyncio or trio cancelled the task."""
    return type(error).__name__ in ("CancelledError", "Cancelled") and not isinstance(
        error, Exception
    )


def _encoding_sent(call: Call) -> str | None:
    """Return the content encoding of a request. It decides what a server answers, so it is part of the match."""
    headers = call.request.get("headers") if type(call.request) is dict else None
    pairs = (
        [[name, str(value)] for name, value in headers.items()]
        if type(headers) is dict
        else headers
    )
    return encoding_of({"headers": pairs})
