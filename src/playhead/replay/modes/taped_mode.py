"""Replay mode: every call is answered from the tape, or it is a divergence. Fails closed.

Knows the matcher and the recorder that writes the replay's own tape; does not know any boundary by name. The
tape holds the command's output as one stream; for a taped child, the answer includes its part of that stream.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from binascii import crc32
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from playhead import events
from playhead.errors import Divergence
from playhead.event import Event
from playhead.host.later import Later
from playhead.recording import order_slot, where
from playhead.recording.calls import Call, Piece, Taped
from playhead.recording.chunks import as_bytes
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.replay.matching.matcher import Matcher, answer_side_call, is_side
from playhead.replay.matching.normalise import places_of
from playhead.replay.matching.taped import TapedCall, TapedRun, answer_of
from playhead.replay.modes.recorded_end import end_process, is_normal, left_open_ns, signal_in
from playhead.replay.report import short_traceback
from playhead.replay.time import script_parent
from playhead.tape.reader import Tape

if TYPE_CHECKING:
    from playhead.replay.matching import nearest
    from playhead.replay.points_table import Place
    from playhead.replay.report import divergence
    from playhead.replay.report.divergence import Parting
else:
    # A replay that does not diverge does not need them.
    nearest = Later("playhead.replay.matching.nearest")
    divergence = Later("playhead.replay.report.divergence")


class Printed:
    """The output of a run on one stream, found by position."""

    def __init__(self, tape: Tape, outputs: list[Event], stream: str) -> None:
        self._starts: list[int] = []
        self._parts: list[tuple[int, bytes]] = []
        at = 0
        for event in outputs:
            data = tape.whole(event).data
            if not isinstance(data, dict) or data.get("stream") != stream:
                continue
            raw = as_bytes(data)
            size = int(data.get("bytes") or len(raw))
            self._starts.append(at)
            self._parts.append((size, raw))
            at += size

    def between(self, start: int, end: int) -> bytes:
        """Return the output between two positions. A part with a redacted secret has another length: it belongs to the
        position where it begins.
        """
        found = b""
        for index in range(max(0, bisect_right(self._starts, start) - 1), len(self._starts)):
            at, (size, raw) = self._starts[index], self._parts[index]
            if at >= end:
                break
            if len(raw) == size:
                found += raw[max(0, start - at) : end - at]
            elif at >= start:
                found += raw
        return found


def with_output(
    taped: Taped, printed: dict[str, Printed], tape: Tape, outputs: list[Event]
) -> Taped:
    """Return the answer with the output that the child itself had printed. `printed` caches the outputs."""
    wrote: Any = taped.facts.get("wrote")
    if not isinstance(wrote, dict):
        return taped
    pieces = list(taped.pieces)
    for stream, parts in wrote.items():
        for name, start, end, began_ns, *besides in (
            parts if isinstance(parts[0], list) else [[*parts, 0]]
        ):
            if name not in printed:
                printed[name] = Printed(tape, outputs, name)
            data, later = printed[name].between(int(start), int(end)), began_ns
            after = b""
            if besides:
                # The program itself also wrote in this range: before the child, after it, or in between.
                length, checksum, later = besides[0]
                own = _find(data, length, checksum)
                data, after = data[:own], data[own + length :]
            for part, at_ns in ((data, began_ns), (after, later)):
                if part:
                    pieces.append(Piece(stream=str(stream), data=part, at_ns=at_ns))
    pieces.sort(key=lambda one: int(one.at_ns))
    return replace(taped, pieces=pieces)


# Bytes that are summed up at most to find a text of the program between outputs of its children.
_MOST_SUMMED = 50_000_000


def _find(data: bytes, length: int, checksum: int) -> int:
    """Return where the text of the program with this length and checksum begins. If it is not found, for example
    because a secret in it was redacted, it is assumed at the end.
    """
    last = len(data) - length
    between = last if last * length < _MOST_SUMMED else 0
    at: int
    for at in (0, last, *range(1, between)):
        if at >= 0 and crc32(data[at : at + length]) == checksum:
            return at
    return max(last, 0)


_MOST_NAMES = 2_000


class ReplayMode:
    """The deck's mode for `playhead replay`."""

    def __init__(
        self,
        recording: TapedRun,
        recorder: Recorder,
        *,
        trim: Callable[[str, Any], Any] | None = None,
        lean: bool = False,
    ) -> None:
        """`lean`: calls that match exactly are not repeated in full on the replay's tape."""
        self.lean = lean
        self.recording = recording
        then = recording.run_start.data if recording.run_start is not None else {}
        self.matcher = Matcher(
            recording.calls,
            recording.below,
            trim=trim,
            then=places_of(then.get("cwd"), then.get("home")),
            now=places_of(
                recording.cwd or _here(), os.environ.get("HOME") if then.get("home") else None
            ),
        )
        self.table = recording.table
        self.partings: list[Parting] = []
        self.frozen = recorder.frozen
        self._recorder = recorder
        self._steps = count(1)
        self._names: dict[str, str] = {}
        self._printed: dict[str, Printed] = {}
        # The calls that `rematch` has given out, by number.
        self._rematched: set[int] = set()
        # Called before this process ends: connections to the program that are still open are compared then.
        self.last_looks: list[Callable[[], None]] = []
        # The process that ends where the run was killed; None: this process.
        self.mortal: int | None = None
        self._lock = threading.Lock()

    def answer(self, call: Call, lane: str) -> Taped | None:
        step = self._step()
        name = self.name_on_tape(call.name)
        match = self.matcher.take_verbatim(call.boundary, name, call.request, lane)
        request: Any = None
        if match is None:
            request = self._recorder.frozen(call.request)
            match = self.matcher.take(call.boundary, name, request, lane)
        if match is None:
            if (aside := answer_side_call(self.recording, call, name)) is not None:
                return aside
            if self.recording.was_killed and not self.matcher.unserved():
                self.die()  # the recorded run ended here
            order_slot.interrupt_if_due()
            raise self.part(self._missed(call, name, request, lane, step))
        found: dict[str, Any] = {
            "rung": match.rung,
            "of": match.call.ref,
            "number": match.call.number,
        }
        if not match.lane_kept:
            found["lane"] = match.call.lane
        quiet = self.lean and match.rung == "exact"
        if quiet:
            found["quiet"] = True
        taped = answer_of(
            self.recording.tape,
            match.call,
            match=found,
            dies=self.die,
            quiet=quiet,
            left_ns=self._left_ns(match.call),
        )
        taped = self.with_output(taped)
        if call.boundary == "mcp":
            taped.printed = self._printed_inside(match.call)
        taped.is_alone = call.boundary == "state" and match.call.ref not in self.recording.below
        # A process may have run in the background: the replay ends when the program waits for it, not when it starts.
        waits = call.boundary != "process" and not taped.pieces and taped.head is None
        taped.ends_at_once = taped.dies is not None and waits
        return taped

    def _left_ns(self, call: TapedCall) -> int | None:
        # A call of the proxy is open when the agent was killed, although the process of the proxy was not.
        if call.outcome is not None or self.mortal is not None:
            return None
        code = self.recording.tape.manifest.exit_code
        is_command = is_normal(code) and not script_parent.is_shell()
        return left_open_ns(self.recording, call, is_command=is_command)

    def with_output(self, taped: Taped) -> Taped:
        """Return the answer with the output that a child printed to the streams it inherited from the program."""
        recording = self.recording
        return with_output(taped, self._printed, recording.tape, recording.outputs)

    def _printed_inside(self, call: TapedCall) -> list[Piece]:
        """Return the output that the processes of this call wrote to the streams of the command."""
        found: list[Piece] = []
        for inner in self.recording.below.get(call.ref, ()):
            if inner.boundary == "process":
                answer = answer_of(self.recording.tape, inner, match={})
                found += self.with_output(replace(answer, pieces=())).pieces
        return found

    def look(self, call: Call, lane: str) -> Taped | None:
        """Return the taped answer of this call without taking it from the tape."""
        request = self._recorder.frozen(call.request)
        name = self.name_on_tape(call.name)
        match = self.matcher.look(call.boundary, name, request, lane)
        return None if match is None else answer_of(self.recording.tape, match.call, match={})

    def die(self) -> None:
        """End as the run ended: by the same signal, without a message."""
        self.look_a_last_time()
        code = self.recording.tape.manifest.exit_code
        if self.mortal is not None:
            os.kill(self.mortal, signal_in(code) or signal.SIGKILL)
            return
        if code is not None and signal_in(code) is None and script_parent.is_shell():
            code = (
                -signal.SIGTERM
            )  # the usual signal of `kill` and `pkill`: the script went on without this process
        end_process(code, with_traceback=self.table is not None and self.table.was_interrupted)

    @property
    def folder(self) -> str:
        """Return the folder of the replay's own tape."""
        return str(self._recorder.folder)

    @property
    def is_request_done(self) -> bool:
        """Return whether one request is replayed, and the program has made all of its calls."""
        if self.recording.request is None:
            return False
        return all(one.is_optional or is_side(one) for one in self.matcher.unserved())

    def look_a_last_time(self) -> None:
        while self.last_looks:
            self.last_looks.pop()()

    @property
    def is_where_it_was_killed(self) -> bool:
        """Return whether a signal ended the command, and all calls that it had made before that have been served."""
        if signal_in(self.recording.tape.manifest.exit_code) is None:
            return False
        return all(is_side(call) for call in self.matcher.unserved())

    def part(self, parting: Parting) -> Divergence:
        """Write a divergence to the tape and return it as an exception."""
        with self._lock:
            self.partings.append(parting)
        self._recorder.append(NewEvent(events.DIVERGENCE, parting.as_json(), parting_at(parting)))
        short_traceback.shorten()
        return Divergence(str(parting), parting)

    def note_skip(self, place: Place) -> None:
        """Write to the tape that no lane came to this point: from here on the order differs. The report shows it."""
        lane = place.what[0] if type(place.what[0]) is str else None
        found = {
            "step": self._step_of(place),
            "lane": lane,
            "point": " ".join(map(str, place.what[1:3])),
        }
        self._recorder.append(NewEvent(events.ORDER, {"skipped": found}))

    def _step_of(self, place: Place) -> int:
        """Return the number of the taped call that the point belongs to, or of the last one with a point before it."""
        numbers = {(one.event.segment, one.event.seq): one.number for one in self.recording.calls}
        order = self.table.segments[place.segment] if self.table is not None else []
        for one in reversed(order[: place.index + 1]):
            if type(one.what[0]) is int and (found := numbers.get((one.segment, one.what[0]))):
                return found
        return 1

    def part_within(
        self, call: Call, lane: str, kind: str, detail: str, advice: str | None
    ) -> None:
        """Write a divergence within a served call to the tape."""
        self.part(
            divergence.Parting(
                kind=kind,
                boundary=call.boundary,
                name=call.name,
                lane=lane,
                detail=detail,
                advice=advice,
            )
        )

    def rematch(self, taped: Taped, fits: Callable[[Taped], bool]) -> Taped:
        """Return the answer of the taped call of the same name whose answer `fits`, each taken once. `taped` is tried
        first, then all others; return `taped` if none fits.
        """
        number = taped.match.get("number")
        if not isinstance(number, int):
            return taped
        own = self.matcher.calls[number - 1]
        others = [
            one
            for one in self.matcher.calls
            if one is not own and (one.boundary, one.name) == (own.boundary, own.name)
        ]
        for call in (own, *others):
            if call.number in self._rematched:
                continue
            answer = taped if call is own else answer_of(self.recording.tape, call, match={})
            if fits(answer):
                self._rematched.add(call.number)
                return answer
        self._rematched.add(number)
        return taped

    def name_on_tape(self, name: str) -> str:
        """Return the name in its form on the tape. Cached, because a program repeats the same few names."""
        frozen = self._names.get(name)
        if frozen is None:
            if len(self._names) > _MOST_NAMES:
                self._names.clear()
            frozen = self._names[name] = str(self._recorder.frozen(name))
        return frozen

    def _step(self) -> int:
        return next(self._steps)  # atomic: no two threads get the same number

    def _expected(self, lane: str, step: int) -> int:
        """Return the number of the taped call that this lane should have made now. `step` counts calls as they begin,
        which is a race between threads; it is returned for a lane that has no call left on the tape.
        """
        return next((one.number for one in self.matcher.unserved() if one.lane == lane), step)

    def _missed(self, call: Call, name: str, request: Any, lane: str, step: int) -> Parting:
        return divergence.Parting(
            kind="missed",
            step=self._expected(lane, step),
            boundary=call.boundary,
            name=name,
            lane=lane,
            at=_place(call),
            request=request,
            nearest=nearest.nearest(self.matcher.calls, call.boundary, name, request, lane),
            detail=None if self.recording.calls else "The tape holds no calls at all.",
            advice=divergence.advice_for(call.boundary),
        )


def _here() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # the folder was deleted under the program
        return None


def _place(call: Call) -> str:
    """Return the place in the code where the call is made: in this process, unless the call names another place."""
    if call.at is not None:
        return str(json.loads(call.at))
    at = where.asker(4)
    return f"{where.shown(at.f_code.co_filename)}:{at.f_lineno} {at.f_code.co_name}"


def parting_at(parting: Parting) -> str:
    return where.json_text(parting.at or "")
