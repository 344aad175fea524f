"""Attach to an orchestrator that already emits events: one line, write-through, nothing changed.

Knows how emitters are called; not what their events mean.
"""

from __future__ import annotations

import sys
from functools import wraps
from types import FrameType
from typing import Any, Callable

from playhead import recording, runs, where
from playhead.errors import UsageError
from playhead.runs import NoRun, Run

_KIND_KEYS = ("kind", "type", "event", "event_type", "name")


class Tap:
    """An attached tap. `untap()` puts the original back; also a context manager."""

    def __init__(self, owner: Any, name: str, original: Any, was_own: bool) -> None:
        self._owner, self._name, self._original, self._was_own = owner, name, original, was_own
        self._in = True

    def untap(self) -> None:
        if not self._in:
            return
        self._in = False
        if self._was_own:
            setattr(self._owner, self._name, self._original)
        else:
            delattr(self._owner, self._name)

    def __enter__(self) -> Tap:
        return self

    def __exit__(self, *raised: object) -> None:
        self.untap()


def tap(owner: Any, name: str = "emit", *, run: Run | None = None) -> Tap:
    """Record every call of `owner.name` before it runs; what it returns or raises is untouched.

    `owner` is an object, a class or a module. `emit("kind", data)`, `emit("kind", a=1)`,
    `emit({"type": "kind", …})` and `emit(event_object)` are understood. Without a current run one is
    opened with the first event and ends with the process.
    """
    function = getattr(owner, name, None)
    if not callable(function):
        raise UsageError(f"{owner!r} has no method {name!r} to tap. Name the one that is called for each event.")
    own = getattr(owner, "__dict__", {}).get(name)
    bound_later = isinstance(owner, type) and not isinstance(own, (staticmethod, classmethod))

    @wraps(function)
    def tapped(*args: Any, **kwargs: Any) -> Any:
        _write(_target(run, owner), args[1:] if bound_later else args, kwargs, name, sys._getframe(1))
        return function(*args, **kwargs)

    replacement: Any = staticmethod(tapped) if isinstance(owner, type) and not bound_later else tapped
    try:
        setattr(owner, name, replacement)
    except (AttributeError, TypeError):
        raise UsageError(
            f"{type(owner).__name__} does not let {name!r} be replaced (slots?). Tap its class: "
            f"playhead.tap({type(owner).__name__}, {name!r})."
        ) from None
    return Tap(owner, name, own, own is not None)


def on_event(run: Run | NoRun | None = None) -> Callable[..., None]:
    """A callback for `on_event=` parameters: writes what it is called with, returns nothing."""

    def callback(*args: Any, **kwargs: Any) -> None:
        _write(run if run is not None else _current(), args, kwargs, "event", sys._getframe(1))

    return callback


def _current() -> Run | NoRun:
    return runs.current()


def _target(chosen: Run | None, owner: Any) -> Run | NoRun:
    if chosen is not None:
        return chosen
    found = runs.current()
    if isinstance(found, Run):
        return found
    kind = owner if isinstance(owner, type) else type(owner)
    started = recording.begin(recording.Wish(name=kind.__name__), at=where.fragment(where.asker(3)))
    if isinstance(started, Run):
        runs.push(started)
    return started


def _write(target: Run | NoRun, args: tuple[Any, ...], kwargs: dict[str, Any], fallback: str, frame: FrameType) -> None:
    """Never raises: whatever shape the call has, the host's own emitter comes next."""
    if not isinstance(target, Run):
        return
    try:
        kind, data = understood(args, kwargs, fallback)
    except Exception as error:  # a host's event object may raise from any attribute
        kind, data = fallback, {"args": list(args), "kwargs": kwargs, "why": type(error).__name__}
    target.recorder.add(kind, data, where.fragment(frame), user=True)


def understood(args: tuple[Any, ...], kwargs: dict[str, Any], fallback: str) -> tuple[str, Any]:
    """What kind of event a call means, and its data."""
    if args and isinstance(args[0], str):
        return str.__str__(args[0]), _rest(args[1:], kwargs)
    if len(args) == 1 and not kwargs:
        event = args[0]
        if isinstance(event, dict):
            for key in _KIND_KEYS:
                if isinstance(event.get(key), str):
                    return event[key], {name: item for name, item in event.items() if name != key}
            return fallback, event
        for key in _KIND_KEYS:
            kind = getattr(event, key, None)
            if isinstance(kind, str):
                return kind, event
        return type(event).__name__, event
    for key in _KIND_KEYS:
        if isinstance(kwargs.get(key), str):
            return kwargs[key], _rest(args, {name: item for name, item in kwargs.items() if name != key})
    return fallback, _rest(args, kwargs)


def _rest(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not args:
        return dict(kwargs) if kwargs else None
    if len(args) == 1 and not kwargs:
        return args[0]
    if len(args) == 1 and isinstance(args[0], dict):
        return {**args[0], **kwargs}
    return {"args": list(args), **kwargs}
