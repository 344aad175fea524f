"""A turn: a unit of agent work with named seams, on the tape however it ends. Knows the recorder;
not what the work is. The program's values and exceptions pass through untouched.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from contextvars import ContextVar, Token
from functools import wraps
from types import TracebackType
from typing import Any, Callable, Iterable, Mapping, TypeVar

from playhead import clock, events, lanes, where
from playhead.recorder import Recorder

F = TypeVar("F", bound=Callable[..., Any])

_here: ContextVar[Turn | None] = ContextVar("playhead_turn", default=None)


class Turn:
    """`with run.turn("respond", purpose=…, input=…) as turn:`; also `async with`, also a decorator.

    `recorder` is asked for when the turn starts: a decorator made at import time records into the
    run that is current when its function is called.
    """

    def __init__(
        self,
        recorder: Callable[[], Recorder | None],
        name: str,
        *,
        purpose: str | None = None,
        input: Any = None,  # noqa: A002  (the word users know)
    ) -> None:
        self._find = recorder
        self.name = name
        self.purpose = purpose
        self.input = input
        self.last_seam: str | None = None
        self._recorder: Recorder | None = None
        self._seams: list[dict[str, Any]] = []
        self._tokens: tuple[Token[Any], Token[Any]] | None = None
        self._seq: int | None = None
        self._started = self._last = 0

    def __enter__(self) -> Turn:
        self._start(where.fragment(sys._getframe(1)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(error)

    async def __aenter__(self) -> Turn:
        self._start(where.fragment(where.asker(2)))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(error)

    def seam(self, name: str, data: Any = None, *, at: str | None = None) -> None:
        """A checkpoint: what has been completed so far, with its time and data."""
        if self._recorder is None:
            return
        at = at or where.fragment(sys._getframe(1))
        now = clock.mono_ns()
        seam = {"name": name, "at_ns": now - self._started, "took_ns": now - self._last, "value": data}
        self._last = now
        self.last_seam = name
        self._seams.append(seam)
        self._recorder.add(events.SEAM, {"turn": self._seq, **seam}, at, parent=self._seq)

    def retrieval(self, sources: Iterable[Any]) -> None:
        """What was looked up for the prompt, per source: id, snippet (kept as a hash), score,
        included or dropped and why, bytes in the prompt."""
        if self._recorder is None:
            return
        rows = [_source(one) for one in sources]
        taken = [row for row in rows if row["included"]]
        data = {
            "turn": self._seq,
            "count": len(rows),
            "included": len(taken),
            "dropped": len(rows) - len(taken),
            "bytes": sum(row["bytes"] or 0 for row in taken),
            "sources": rows,
        }
        self._recorder.add(events.RETRIEVAL, data, where.fragment(sys._getframe(1)), parent=self._seq)

    def __call__(self, function: F) -> F:
        """As a decorator: each call is a turn of its own, its arguments the input."""
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def async_turn(*args: Any, **kwargs: Any) -> Any:
                turn = self._of(function, args, kwargs)
                turn._start(_location(function))
                try:
                    value = await function(*args, **kwargs)
                except BaseException as error:
                    turn._end(error)
                    raise
                turn._end(None, value)
                return value

            return async_turn  # type: ignore[return-value]  # same signature by construction

        @wraps(function)
        def sync_turn(*args: Any, **kwargs: Any) -> Any:
            turn = self._of(function, args, kwargs)
            turn._start(_location(function))
            try:
                value = function(*args, **kwargs)
            except BaseException as error:
                turn._end(error)
                raise
            turn._end(None, value)
            return value

        return sync_turn  # type: ignore[return-value]  # same signature by construction

    def _of(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Turn:
        given = self.input if self.input is not None else _bound(function, args, kwargs)
        return Turn(self._find, self.name, purpose=self.purpose, input=given)

    def _start(self, at: str) -> None:
        self._recorder = recorder = self._find()
        self._started = self._last = clock.mono_ns()
        if recorder is None:
            return
        data = {"name": self.name, "purpose": self.purpose, "input": self.input}
        self._seq = recorder.add(events.TURN_START, data, at, why=self.purpose)
        self._tokens = (lanes.enclosing.set(self._seq), _here.set(self))

    def _end(self, error: BaseException | None, value: Any = None) -> None:
        recorder = self._recorder
        if recorder is None:
            return
        if self._tokens is not None:
            lanes._reset(lanes.enclosing, self._tokens[0])
            lanes._reset(_here, self._tokens[1])
        data: dict[str, Any] = {
            "turn": self._seq,
            "name": self.name,
            "how": "returned" if error is None else "raised",
            "took_ns": clock.mono_ns() - self._started,
            "last_seam": self.last_seam,
            # The whole partial trace where it failed: the one record that somebody will look at.
            "seams": self._seams if error is not None else [_timing(seam) for seam in self._seams],
        }
        data["error" if error is not None else "value"] = value if error is None else error
        recorder.add(events.TURN_END, data, '""', parent=self._seq)
        self._recorder = None


def current() -> Turn | None:
    """The turn that the code running now belongs to."""
    return _here.get()


def _timing(seam: dict[str, Any]) -> dict[str, Any]:
    return {name: seam[name] for name in ("name", "at_ns", "took_ns")}


def _location(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return '""'
    return where.quoted(code.co_filename, code.co_firstlineno, code.co_name)


def _bound(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Arguments by name, without `self`: that is the program, not the input."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {"args": list(args), "kwargs": dict(kwargs)}
    return {name: item for name, item in bound.items() if name not in ("self", "cls")}


def _source(given: Any) -> dict[str, Any]:
    def get(*names: str) -> Any:
        for name in names:
            found = given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)
            if found is not None:
                return found
        return None

    snippet = get("snippet", "text", "content")
    raw = None if snippet is None else str(snippet).encode("utf-8", "replace")
    included = get("included")
    return {
        "id": get("id", "source", "name"),
        "hash": get("hash") or (None if raw is None else hashlib.sha256(raw).hexdigest()[:16]),
        "score": get("score"),
        "included": True if included is None else bool(included),
        "why": get("why", "reason", "dropped"),
        "bytes": get("bytes") if get("bytes") is not None else (None if raw is None else len(raw)),
    }
