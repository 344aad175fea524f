"""A turn: a unit of agent work with named seams. It is on the tape however it ends. Knows the recorder; does not know
the work. The program's values and exceptions pass through unchanged.

A retrieval (the sources that were looked up for a prompt) becomes rows: every source gets a row, whatever its type.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar, Token
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from playhead import clock, events
from playhead.encoding.values import safe_str
from playhead.events import Ref
from playhead.host.interrupts import is_interrupt
from playhead.host.later import Later
from playhead.recording import lanes, where
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder

if TYPE_CHECKING:
    from playhead.recording import around
else:
    around = Later("playhead.recording.around")


F = TypeVar("F", bound=Callable[..., Any])

here: ContextVar[Turn | None] = ContextVar("playhead_turn", default=None)
lanes.carried.append(here)

# The runs that are open in this process; `runs` keeps the list.
open_runs: list[object] = []

# No line of the host's code ends a turn.
_NOWHERE = '""'


class Turn:
    """One turn: `with run.turn("respond", purpose=…, input=…) as turn:`; also `async with`, also a decorator.

    `recorder` is called when the turn starts: a decorator made at import time records into the run that is current when
    its function is called.
    """

    def __init__(
        self,
        recorder: Callable[[], Recorder | None],
        name: str,
        *,
        purpose: str | None = None,
        input: Any = None,  # noqa: A002  (the word users know)
        recording: Sequence[object] = (True,),
    ) -> None:
        self._find = recorder
        # Empty: nothing is recorded, and the turn does nothing.
        self._recording = recording
        self.name = name
        self.purpose = purpose
        self.input = input
        self.last_seam: str | None = None
        self._recorder: Recorder | None = None
        # Without their data, which is on the tape: we must not keep the host's objects alive.
        self._seams: list[dict[str, Any]] = []
        self._tokens: list[tuple[Token[Any], Token[Any]]] = []
        self._seq: int | None = None
        self._segment = ""
        self._started = self._last = 0

    def __enter__(self) -> Turn:  # noqa: PYI034  (typing.Self came with 3.11)
        if not self._recording:
            return self
        self.start(where.fragment(sys._getframe(1)))
        self.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._recorder is not None:
            self.leave()
            self.end(error)

    async def __aenter__(self) -> Turn:  # noqa: PYI034  (as above)
        if not self._recording:
            return self
        self.start(where.asked(2))
        self.enter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __call__(self, function: F) -> F:
        """Decorate a function: each call is a turn of its own, and its arguments are the input."""
        at = around.place_of(function)

        find = self._find

        def begin(args: Any, kwargs: Any) -> Turn | None:
            if find() is None:
                return None  # nothing is recorded: the call costs next to nothing
            given = self.input
            if given is None:
                given = around.arguments_of(function, args, kwargs)
            turn = Turn(self._find, self.name, purpose=self.purpose, input=given)
            turn.start(at)
            return turn

        return around.around(function, begin, self._recording)

    def seam(self, name: str, data: Any = None, *, at: str | None = None) -> None:
        """Record a checkpoint: the work completed so far, with its time and data."""
        recorder = self._recorder
        if recorder is None:
            return
        now = clock.mono_ns()
        seam = {"name": name, "at_ns": now - self._started, "took_ns": now - self._last}
        self._last = now
        self.last_seam = name
        self._seams.append(seam)
        turn = self._ref(recorder)
        facts = {"turn": turn, **seam, "value": data}
        recorder.append(
            NewEvent(events.SEAM, facts, at or where.fragment(sys._getframe(1)), parent=turn)
        )

    @property
    def seam_count(self) -> int:
        """Return the number of seams completed so far."""
        return len(self._seams)

    def retrieval(self, sources: Iterable[Any], *, at: str | None = None) -> None:
        """Record the sources that were looked up for the prompt, as dicts or objects.

            turn.retrieval([{"id": "faq-12", "snippet": text, "score": 0.91},
                            {"id": "faq-40", "score": 0.2, "included": False, "why": "below 0.5"}])

        Members of a source, each under any of these names: `id`, `source_id`, `doc_id`, `document_id`, `chunk_id`,
        `source`, `name`, `url`, `path`; `snippet`, `text`, `content`, `page_content` (kept as a hash), or
        `hash`; `score`, `similarity`, `relevance`; `included` or `dropped`; `why`, `reason`, `drop_reason`;
        `bytes`, `bytes_in_prompt` (by default the size of the snippet; a dropped
        source has none). Other members are not recorded, and one warning says so.
        """
        recorder = self._recorder
        if recorder is not None:
            at = at or where.fragment(sys._getframe(1))
            record_retrieval(recorder, self._ref(recorder), sources, at)

    @property
    def is_open(self) -> bool:
        return self._recorder is not None

    def start(self, at: str = _NOWHERE) -> None:
        """Write the beginning of the turn to the tape of the run that is current now."""
        self._recorder = recorder = self._find()
        self._started = self._last = clock.mono_ns()
        self._seams, self.last_seam = [], None
        if recorder is None:
            return
        data = {"name": self.name, "purpose": self.purpose, "input": self.input}
        self._seq = recorder.append(NewEvent(events.TURN_START, data, at, why=self.purpose))
        self._segment = recorder.segment

    def enter(self) -> None:
        """Make the following events belong to this turn, until `leave`."""
        if self._recorder is not None:
            self._tokens.append((lanes.enclosing.set(self._ref(self._recorder)), here.set(self)))

    def leave(self) -> None:
        if self._tokens:
            around, turn = self._tokens.pop()
            lanes.reset(lanes.enclosing, around)
            lanes.reset(here, turn)

    def end(self, error: BaseException | None, value: Any = None) -> None:
        """Write the end of the turn to the tape. If it failed, include the whole path to the place of the failure."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        turn = self._ref(recorder)
        data: dict[str, Any] = {
            "turn": turn,
            "name": self.name,
            "how": _how(error),
            "took_ns": clock.mono_ns() - self._started,
            "last_seam": self.last_seam,
            "seams": self._seams,
        }
        if data["how"] == "raised":
            data["error"] = error
        else:
            data["value"] = value
        recorder.append(NewEvent(events.TURN_END, data, _NOWHERE, parent=turn))

    def _ref(self, recorder: Recorder) -> Ref | None:
        """Return the reference to its beginning. In a child that was forked since, this is a name that is valid there
        too.
        """
        if self._seq is None or recorder.segment == self._segment:
            return self._seq
        return f"{self._segment}:{self._seq}"


def record_retrieval(recorder: Recorder, turn: Ref | None, sources: Iterable[Any], at: str) -> None:
    """Write the sources to the tape; `turn` is None outside of turns."""
    data = {"turn": turn, **source_rows(sources)}
    if unknown := data.pop("unknown"):
        known = ", ".join(name for names in _MEMBERS.values() for name in names)
        recorder.warn(f"retrieval() does not record {', '.join(unknown)}; it knows {known}.")
    recorder.append(NewEvent(events.RETRIEVAL, data, at, parent=turn))


def _how(error: BaseException | None) -> str:
    """Return how a turn ended. `left`: the caller closed a generator early, which is not a failure."""
    if error is None:
        return "returned"
    return "left" if isinstance(error, GeneratorExit) else "raised"


def current() -> Turn | None:
    """Return the open turn that the current code belongs to; None if there is none."""
    turn = here.get()
    return turn if turn is not None and turn.is_open else None


_MOST_SOURCES = 10_000


def source_rows(sources: Iterable[Any]) -> dict[str, Any]:
    """Return the sources as rows, and their counts. Of an endless list, the first ten thousand."""
    rows: list[dict[str, Any]] = []
    unknown: dict[str, None] = {}
    try:
        for source in islice(sources, _MOST_SOURCES):
            rows.append(_row(source))
            if issubclass(
                type(source), dict
            ):  # not `isinstance`: a host's object may lie, or raise
                unknown.update((safe_str(name)[:80], None) for name in source if name not in _KNOWN)
    except Exception as error:  # the host's own iterator
        if is_interrupt(error):
            raise
        rows.append(_unread(error))
    taken = [row for row in rows if row["included"]]
    return {
        "count": len(rows),
        "included": len(taken),
        "dropped": len(rows) - len(taken),
        "bytes": sum(row["bytes"] for row in taken if type(row["bytes"]) is int),
        "sources": rows,
        # The names of members that a row does not have.
        "unknown": list(unknown)[:10],
    }


def _row(source: Any) -> dict[str, Any]:
    try:
        return _read(source)
    except Exception as error:  # a host's object may raise from any attribute
        if is_interrupt(error):
            raise
        return _unread(error)


# The members of a source, by the names that programs give them.
_MEMBERS = {
    "id": ("id", "source_id", "doc_id", "document_id", "chunk_id", "source", "name", "url", "path"),
    "snippet": ("snippet", "text", "content", "page_content"),
    "hash": ("hash", "snippet_hash"),
    "score": ("score", "similarity", "relevance"),
    "included": ("included",),
    "dropped": ("dropped",),
    "why": ("why", "reason", "drop_reason"),
    "bytes": ("bytes", "bytes_in_prompt"),
}
_KNOWN = frozenset(name for names in _MEMBERS.values() for name in names)


def _read(source: Any) -> dict[str, Any]:
    def get(member: str) -> Any:
        for name in _MEMBERS[member]:
            found = source.get(name) if isinstance(source, dict) else getattr(source, name, None)
            if found is not None:
                return found
        return None

    snippet, included, dropped = get("snippet"), get("included"), get("dropped")
    raw = None if snippet is None else safe_str(snippet).encode()
    # `dropped` is a flag, or the reason itself.
    is_included = bool(included) if included is not None else not dropped
    why = get("why")
    if why is None and isinstance(dropped, str):
        why = dropped
    size = get("bytes") if is_included else 0
    return {
        "id": get("id"),
        "hash": get("hash") or (None if raw is None else hashlib.sha256(raw).hexdigest()[:16]),
        "score": get("score"),
        "included": is_included,
        "why": why,
        "bytes": size if size is not None else (None if raw is None else len(raw)),
    }


def _unread(error: Exception) -> dict[str, Any]:
    why = f"it could not be read: {type(error).__name__}"
    return {"id": None, "hash": None, "score": None, "included": True, "why": why, "bytes": None}
