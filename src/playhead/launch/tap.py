"""Attach to a program that already emits events: one line of code, and nothing else in the program changes.

Each event is written before the emitter runs. Knows how an emitter is found, replaced and restored, and which kind
and data a call of it stands for.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from enum import Enum
from functools import wraps
from pathlib import PurePath
from types import FrameType, ModuleType
from typing import Any

from playhead.errors import UsageError
from playhead.host.interrupts import is_interrupt
from playhead.launch import record_run as recording
from playhead.recording import runs, where
from playhead.recording.encoder import NewEvent
from playhead.recording.runs import NoRun, Run

_MARK = "_playhead_tap"


class Tap:
    """An attached tap. `untap()` restores the original emitter; so does the end of a `with` block."""

    def __init__(self, owner: Any, name: str, original: Any, *, was_own: bool) -> None:
        self._owner, self._name, self._original, self._was_own = owner, name, original, was_own
        # False: the emitter was restored, although other code may have wrapped our replacement.
        self.is_on = True

    def untap(self) -> None:
        if not self.is_on:
            return
        self.is_on = False
        mine = _mark_of(_static(self._owner, self._name)) is self
        if mine and self._was_own:
            _set(self._owner, self._name, self._original)
        elif mine and isinstance(self._owner, type):
            delattr(self._owner, self._name)
        elif mine:
            object.__delattr__(self._owner, self._name)

    def __enter__(self) -> Tap:  # noqa: PYI034  (typing.Self came with 3.11)
        return self

    def __exit__(self, *raised: object) -> None:
        self.untap()


# A name of a member, or a function of the event.
Look = str | Callable[[Any], Any]


def tap(
    owner: Any,
    name: str = "emit",
    *,
    run: Run | None = None,
    who: Look | None = None,
    why: Look | None = None,
) -> Tap:
    """Record every call of an emitter before it runs. What the emitter returns or raises stays the same.

        playhead.tap(orchestrator)                 # orchestrator.emit(…)
        playhead.tap(events, "publish").untap()    # stop recording events.publish(…)

    Calls like `emit("kind", data)`, `emit("kind", a=1)`, `emit({"type": "kind", …})` and `emit(event_object)`
    become events of that kind. Without a current run, the first event opens one that ends with the process.

    Args:
        owner: The object, class or module that has the emitter.
        name: The method that is called for each event.
        run: The run to write to. By default the current one.
        who: Which member of an event names the agent or component, or a function of the event. By default
            `who`, `agent`, `actor` or `component`.
        why: The same for the reason. By default `why` or `reason`.

    Raises:
        UsageError: `owner` has no such method, or does not let it be replaced.
    """
    lift = _Lift(who, why)
    found = _static(owner, name)
    if not callable(getattr(owner, name, None)):
        raise UsageError(
            f"{type(owner).__name__} has no method {name!r} to tap. "
            "Name the one that is called for each event."
        )
    there = _mark_of(found)
    if there is not None and there.is_on:
        return there  # already tapped
    try:
        return _put(owner, name, run, lift)
    except (AttributeError, TypeError, ValueError):
        if isinstance(owner, type):
            raise UsageError(f"{owner.__name__} does not let {name!r} be replaced.") from None
    # An object with slots, or a frozen one: tap its class, but only for this object.
    try:
        return _put(type(owner), name, run, lift, only=owner)
    except (AttributeError, TypeError):
        raise UsageError(
            f"{type(owner).__name__} does not let {name!r} be replaced. "
            "Give it a callback instead: playhead.on_event()."
        ) from None


def on_event(
    run: Run | NoRun | None = None, *, who: Look | None = None, why: Look | None = None
) -> Callable[..., None]:
    """A callback that records each event it is called with, for orchestrators that take one.

        Orchestrator(on_event=playhead.on_event())
        job.subscribers.append(playhead.on_event(who="speaker"))

    Without a current run, the first event opens one that ends with the process.

    Args:
        run: The run to write to. By default the one that is current when an event comes.
        who: Which member of an event names the agent or component, or a function of the event. By default
            `who`, `agent`, `actor` or `component`.
        why: The same for the reason. By default `why` or `reason`.
    """
    lift = _Lift(who, why)

    def callback(*args: Any, **kwargs: Any) -> None:
        _write(_target(run, _program_name()), args, kwargs, "event", sys._getframe(1), lift=lift)

    return callback


def _program_name() -> str:
    """The name of a run that a callback opens: it does not know the orchestrator that calls it."""
    words = getattr(sys, "argv", None) or [""]
    return PurePath(str(words[0])).stem.lstrip("-") or "events"


_WHO = ("who", "agent", "actor", "component")
_WHY = ("why", "reason")
# Members that hold the event's own members: `emit("kind", data={"agent": "Dreamer"})`.
_NESTED = ("data", "payload", "details", "metadata")


class _Lift:
    """Finds who emitted an event, and why, among its members. They stay in the event's data as well."""

    def __init__(self, who: Look | None, why: Look | None) -> None:
        self._who, self._why = who, why

    def who(self, kind: str, data: Any) -> str | None:
        return _found(self._who, _WHO, kind, data)

    def why(self, kind: str, data: Any) -> str | None:
        return _found(self._why, _WHY, kind, data)


def _found(look: Look | None, usual: tuple[str, ...], kind: str, data: Any) -> str | None:
    """Return the value of a member. Never raises: without the member, the event is recorded without it."""
    try:
        if callable(look):
            return _said(look({"kind": kind, **data} if isinstance(data, dict) else data))
        keys = usual if look is None else (look,)
        nested = (_member(data, name) for name in _NESTED)
        for holder in (data, *(one for one in nested if isinstance(one, dict))):
            for key in keys:
                if (said := _said(_member(holder, key))) is not None:
                    return said
    except Exception as error:  # the host's function, or an attribute of its event object
        if is_interrupt(error):
            raise
    return None


def _member(holder: Any, key: str) -> Any:
    return dict.get(holder, key) if isinstance(holder, dict) else getattr(holder, key, None)


def _said(value: Any) -> str | None:
    """Return a text as it is, and the name of an agent that is an object."""
    if value is None or isinstance(value, (bool, int, float, list, tuple, dict)):
        return None
    return _word(value) or _word(getattr(value, "name", None))


def _put(owner: Any, name: str, run: Run | None, lift: _Lift, *, only: Any = None) -> Tap:
    own = vars(owner).get(name) if hasattr(owner, "__dict__") else None
    made = Tap(owner, name, own, was_own=own is not None)
    reporter = _EventReporter(made, owner, name, run, lift=lift, only=only)
    _set(owner, name, _replacement(owner, name, reporter))
    return made


class _EventReporter:
    """Records the calls of an emitter."""

    def __init__(
        self, tap: Tap, owner: Any, name: str, run: Run | None, *, lift: _Lift, only: Any
    ) -> None:
        self.tap, self._owner, self._name, self._run, self._only = tap, owner, name, run, only
        self._lift = lift

    def report(self, bound: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`bound`: the object or class that the emitter is called on, if it is one."""
        if not self.tap.is_on or (self._only is not None and bound is not self._only):
            return
        frame = sys._getframe(2)
        if where.is_foreign(frame.f_code.co_filename):
            frame = where.asker(2)
        target = _target(self._run, _owner_name(self._owner))
        _write(target, args, kwargs, self._name, frame, lift=self._lift)


def _owner_name(owner: Any) -> str:
    """Return the name of a run that a tap opens: the name of the class or the module."""
    if isinstance(owner, ModuleType):
        return owner.__name__
    return (owner if isinstance(owner, type) else type(owner)).__name__


def _replacement(owner: Any, name: str, reporter: _EventReporter) -> Any:
    """The replacement of the emitter: of the same kind, bound in the same way."""
    found = _static(owner, name)
    if not isinstance(owner, type):
        return _tapped(getattr(owner, name), reporter, binds=False)
    if isinstance(found, staticmethod):
        return staticmethod(_tapped(found.__func__, reporter, binds=False))
    if isinstance(found, classmethod):
        return classmethod(_tapped(found.__func__, reporter, binds=True))
    if hasattr(type(found), "__get__"):
        return _tapped(found, reporter, binds=True)
    # A callable object: nothing is bound.
    return staticmethod(_tapped(found, reporter, binds=False))


def _tapped(
    function: Callable[..., Any], reporter: _EventReporter, *, binds: bool
) -> Callable[..., Any]:
    def tapped(*args: Any, **kwargs: Any) -> Any:
        reporter.report(args[0] if binds and args else None, args[1:] if binds else args, kwargs)
        return function(*args, **kwargs)

    async def tapped_async(*args: Any, **kwargs: Any) -> Any:
        reporter.report(args[0] if binds and args else None, args[1:] if binds else args, kwargs)
        return await function(*args, **kwargs)

    made = wraps(function)(tapped_async if inspect.iscoroutinefunction(function) else tapped)
    setattr(made, _MARK, reporter.tap)
    return made


def _static(owner: Any, name: str) -> Any:
    """Return the attribute as it is stored, before binding."""
    try:
        return inspect.getattr_static(owner, name)
    except AttributeError:
        return None


def _mark_of(found: Any) -> Tap | None:
    mark = getattr(getattr(found, "__func__", found), _MARK, None)
    return mark if isinstance(mark, Tap) else None


def _set(owner: Any, name: str, value: Any) -> None:
    """Set an attribute without calling the program's own `__setattr__`, which may refuse it or have side effects."""
    if isinstance(owner, type):
        setattr(owner, name, value)
    else:
        object.__setattr__(owner, name, value)


_opening = threading.Lock()


# Set when recording is off or impossible: otherwise each event would search for settings again.
_declined: NoRun | None = None


def _target(chosen: Run | NoRun | None, name: str) -> Run | NoRun:
    global _declined  # noqa: PLW0603  one answer per process
    if chosen is not None:
        return chosen
    found = runs.current()
    if isinstance(found, Run):
        return found
    if _declined is not None:
        return _declined
    with _opening:  # two threads that emit for the first time open one run
        found = runs.current()
        if isinstance(found, Run):
            return found
        wish = recording.Wish(name=name, for_process=True)
        started = recording.begin(wish, at=where.asked(4))
        if isinstance(started, Run):
            runs.push_process(started)
        else:
            _declined = started
        return started


def _write(
    target: Run | NoRun,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    fallback: str,
    frame: FrameType,
    *,
    lift: _Lift,
) -> None:
    """Write an event. Never raises, whatever the form of the call: the program's own emitter must run next."""
    if not isinstance(target, Run):
        return
    who = why = None
    try:
        kind, data = event_of(args, kwargs, fallback)
        who, why = lift.who(kind, data), lift.why(kind, data)
    except Exception as error:  # a host's event object may raise from any attribute
        if is_interrupt(error):
            raise
        kind, data = fallback, {"args": list(args), "kwargs": kwargs, "why": type(error).__name__}
    target.recorder.append(NewEvent(kind, data, where.fragment(frame), user=True, who=who, why=why))


_KIND_KEYS = ("kind", "type", "event", "event_type", "name")


def event_of(args: tuple[Any, ...], kwargs: dict[str, Any], fallback: str) -> tuple[str, Any]:
    """The kind of event that was emitted, and its data; `fallback` where the call names no kind."""
    first = _word(args[0]) if args else None
    if first is not None:
        return first, _rest(args[1:], kwargs)
    if len(args) == 1 and not kwargs:
        return _of_object(args[0], fallback)
    for key in _KIND_KEYS:
        kind = _word(kwargs.get(key))
        if kind is not None:
            return kind, _rest(args, {name: v for name, v in kwargs.items() if name != key})
    return fallback, _rest(args, kwargs)


def _of_object(event: Any, fallback: str) -> tuple[str, Any]:
    if isinstance(event, dict):
        for key in _KIND_KEYS:
            kind = _word(dict.get(event, key))
            if kind is not None:
                return kind, {name: v for name, v in dict.items(event) if name != key}
        return fallback, event
    for key in _KIND_KEYS:
        kind = _word(getattr(event, key, None))
        if kind is not None:
            return kind, event
    return type(event).__name__, event


def _word(value: Any) -> str | None:
    """A kind as text: a string, or an enum with a string value."""
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    return str.__str__(value) if isinstance(value, str) else None


def _rest(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not args:
        return dict(kwargs) if kwargs else None
    if len(args) == 1 and not kwargs:
        return args[0]
    if len(args) == 1 and isinstance(args[0], dict):
        return {**args[0], **kwargs}
    return {"args": list(args), **kwargs}
