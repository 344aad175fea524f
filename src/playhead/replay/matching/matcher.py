"""Pair a call with a taped one. Knows the ladder of matches (exact, normalised…); does not know files or modes.

Thread-safe by one lock. Each taped call is served once. The ordinal is taken when the call begins, so the order in
which answers arrive does not matter. Side traffic, such as telemetry, is paired separately and never fails a
replay.
"""

from __future__ import annotations

import errno
import re
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

from playhead.recording.calls import SIDE, Call, Taped
from playhead.replay.matching.fingerprint import canonical_text, plain_key
from playhead.replay.matching.normalise import Places, Settler
from playhead.replay.matching.taped import TapedCall, TapedRun, answer_of

Rung = str  # exact, normalised; other modes add theirs


class Match(NamedTuple):
    """A call paired with a taped one, and at which rung of the ladder."""

    call: TapedCall
    rung: Rung
    lane_kept: bool
    score: float = 1.0


class _Shelf:
    """Calls by a key; the calls of each lane are in order."""

    def __init__(self) -> None:
        self._lanes: dict[Hashable, dict[str, deque[TapedCall]]] = defaultdict(
            lambda: defaultdict(deque)
        )

    def put(self, key: Hashable, call: TapedCall) -> None:
        self._lanes[key][call.lane].append(call)

    def put_back(self, key: Hashable, call: TapedCall) -> None:
        calls = self._lanes[key][call.lane]
        if call not in calls:
            calls.appendleft(call)

    def next(self, key: Hashable, lane: str) -> TapedCall | None:
        """Return the next call of this lane. It leaves the shelf when it has been served."""
        lanes = self._lanes.get(key)
        return None if lanes is None else _peek(lanes.get(lane))

    def heads(self, key: Hashable) -> list[TapedCall]:
        """Return the next call of every lane that has one left."""
        lanes = self._lanes.get(key)
        found = (_peek(calls) for calls in lanes.values()) if lanes is not None else ()
        return [call for call in found if call is not None]


def _peek(calls: deque[TapedCall] | None) -> TapedCall | None:
    while calls and calls[0].served:
        calls.popleft()
    return calls[0] if calls else None


class Matcher:
    """Serves each of `calls` once. `trim` applies the user's ignore rules to a request; `then` and `now`
    are the folders of the recorded run, and of this one.
    """

    def __init__(
        self,
        calls: Iterable[TapedCall],
        below: dict[str, list[TapedCall]],
        *,
        trim: Callable[[str, Any], Any] | None = None,
        then: Places = (),
        now: Places = (),
    ) -> None:
        self.calls = list(calls)
        # One settler for both runs if their folders are the same, so that its cache serves both.
        self._then = Settler(then)
        self._now = self._then if list(then) == list(now) else Settler(now)
        self._below = below
        self._trim = trim
        self._lock = threading.Lock()
        self._plain = _Shelf()
        self._canonical: dict[tuple[str, str], _Shelf] = {}
        self._normalised: dict[str, _Shelf] = {}
        for call in self.calls:
            key = call.key if trim is None else plain_key(trim(call.boundary, call.request))
            self._plain.put((call.boundary, call.name, key), call)

    def take(
        self, boundary: str, name: str, request: Any, lane: str, *, before: int | None = None
    ) -> Match | None:
        """Return the taped call that matches this one; None if there is none. `request` is frozen and redacted.

        `before`: only calls with a lower number than this.
        """
        with self._lock:
            match = self._find(boundary, name, request, lane)
            if match is None or (before is not None and match.call.number >= before):
                return None
            self.mark(match.call)
            return match

    def take_verbatim(self, boundary: str, name: str, request: Any, lane: str) -> Match | None:
        """Return the taped call whose request equals this one in the program's own form, neither frozen nor redacted. A
        request that contains a secret differs on the tape, so it is not found here.
        """
        if self._trim is not None:
            return None
        try:
            key = (boundary, name, plain_key(request))
        except TypeError:  # objects that have to be frozen first
            return None
        with self._lock:
            match = self._exact(self._plain, key, lane)
            if match is not None:
                self.mark(match.call)
            return match

    def look(self, boundary: str, name: str, request: Any, lane: str) -> Match | None:
        """Return the match that `take` would return, without taking it."""
        with self._lock:
            return self._find(boundary, name, request, lane)

    def mark(self, call: TapedCall) -> None:
        """Mark a call as served, together with all calls inside it: a taped answer makes none of them again. A process
        of the program itself is run again, and a forked process finds its calls here.
        """
        call.served = True
        if call.event.data.get("own"):
            return
        for inner in self._below.get(call.ref, ()):
            if not inner.served:
                self.mark(inner)

    def give_back(self, call: TapedCall) -> None:
        """Undo `mark`: the answer did not reach the program after all."""
        with self._lock:
            self._unmark(call)

    def _unmark(self, call: TapedCall) -> None:
        call.served = False
        request = self._trimmed(call)
        self._plain.put_back((call.boundary, call.name, plain_key(request)), call)
        if (shelf := self._canonical.get((call.boundary, call.name))) is not None:
            shelf.put_back(canonical_text(request), call)
        if (shelf := self._normalised.get(call.boundary)) is not None:
            shelf.put_back(self._then.text([call.name, request]), call)
        for inner in self._below.get(call.ref, ()):
            self._unmark(inner)

    def unserved(self) -> list[TapedCall]:
        with self._lock:
            return [call for call in self.calls if not call.served]

    def _find(self, boundary: str, name: str, request: Any, lane: str) -> Match | None:
        if self._trim is not None:
            request = self._trim(boundary, request)
        return (
            self._exact(self._plain, (boundary, name, plain_key(request)), lane)
            or self._exact(self._by_canonical(boundary, name), canonical_text(request), lane)
            or self._by_rename(boundary, self._now.text([name, request]), lane)
            or self._without_form(boundary, name, request, lane)
        )

    def _without_form(self, boundary: str, name: str, request: Any, lane: str) -> Match | None:
        """Match a form that is sent in pieces against a tape of an earlier version, which does not have the fields."""
        body = request.get("body") if type(request) is dict else None
        if type(body) is not dict or not body.get("streamed") or len(body) == 1:
            return None
        return self._find(boundary, name, {**request, "body": {"streamed": True}}, lane)

    def _exact(self, shelf: _Shelf, key: Hashable, lane: str) -> Match | None:
        call = shelf.next(key, lane)
        if call is not None:
            return Match(call=call, rung="exact", lane_kept=True)
        heads = shelf.heads(key)
        if not heads:
            return None
        return Match(call=min(heads, key=lambda one: one.number), rung="exact", lane_kept=False)

    def _by_rename(self, boundary: str, key: str, lane: str) -> Match | None:
        shelf = self._by_normalised(boundary)
        call = shelf.next(key, lane)
        if call is not None:
            return Match(call=call, rung="normalised", lane_kept=True)
        heads = shelf.heads(key)
        # Two lanes could be meant, and a wrong guess would not be noticed: no match.
        return Match(call=heads[0], rung="normalised", lane_kept=False) if len(heads) == 1 else None

    def _by_canonical(self, boundary: str, name: str) -> _Shelf:
        """Return the shelf by canonical text. Built for one name when first needed: a replay whose requests match
        unchanged never pays for it.
        """
        shelf = self._canonical.get((boundary, name))
        if shelf is None:
            shelf = self._canonical[boundary, name] = _Shelf()
            for call in self.calls:
                if call.boundary == boundary and call.name == name and not call.served:
                    shelf.put(canonical_text(self._trimmed(call)), call)
        return shelf

    def _by_normalised(self, boundary: str) -> _Shelf:
        shelf = self._normalised.get(boundary)
        if shelf is None:
            shelf = self._normalised[boundary] = _Shelf()
            for call in self.calls:
                if call.boundary == boundary and not call.served:
                    shelf.put(self._then.text([call.name, self._trimmed(call)]), call)
        return shelf

    def _trimmed(self, call: TapedCall) -> Any:
        return call.request if self._trim is None else self._trim(call.boundary, call.request)


def is_side(call: TapedCall) -> bool:
    return bool(call.event.data.get(SIDE))


def answer_side_call(recording: TapedRun, call: Call, name: str) -> Taped | None:
    """Return an answer to side traffic that is not on the tape in this form: the taped answer of a similar call, an
    empty answer, or for a process the error that the program cannot be found. None if this call is the agent's work, or
    needs its own taped answer.
    """
    if not call.facts.get(SIDE):
        return None
    found: dict[str, Any] = {"rung": SIDE}
    for taped in recording.calls:
        alike = taped.boundary == call.boundary and taped.name == name and is_side(taped)
        if call.boundary == "process":
            # Another command of the same program has another answer. Process ids differ in every run.
            alike = alike and _without_numbers(taped.request) == _without_numbers(call.request)
        if alike and taped.outcome is not None:
            found["of"] = taped.ref
            return answer_of(recording.tape, taped, match=found)
    if call.boundary == "process":
        # The agent checks something that the recorded agent did not check: its timers fired later, or a program is not
        # installed here. The process is not run. If that changes the agent's behaviour, its requests and output differ.
        why = "not on the tape, and not run"
        return Taped(how="raised", error=FileNotFoundError(errno.ENOENT, why, name), match=found)
    # An HTTP client of a Python program cannot be given an answer without a head.
    if call.facts.get("export"):
        return None
    return Taped(how="returned", match=found)


def _without_numbers(request: Any) -> str:
    return re.sub(r"\d{2,}", "#", repr(canonical_text(request)))
