"""`@playhead.tool`: anybody's function as a tool whose calls are recorded, and served in a replay.

Knows functions, coroutines and generators; no framework. Where nothing records, the function is
called as if it had no decorator.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from playhead.errors import UsageError
from playhead.events import Effect
from playhead.hooks import answers
from playhead.hooks.answers import Named
from playhead.hooks.tools import tool_streams
from playhead.hooks.tools.arguments import Bind, binder, is_method
from playhead.hooks.tools.tool_calls import claims, ended_by, given_up, is_claimed
from playhead.recording import deck, pacing, where
from playhead.recording.deck import Call, Crossing, Deck
from playhead.recording.holes import HOLE, around

F = TypeVar("F", bound=Callable[..., Any])

_EFFECTS = ("read", "write", "irreversible")


@dataclass(slots=True, kw_only=True, eq=False)
class Declared:
    """What a decorated function was declared to be; frameworks that wrap it ask for it."""

    name: str
    effect: Effect | None
    bind: Bind
    function: Callable[..., Any]
    _types: Named | None = None

    def types(self) -> Named:
        """Looked up with the first answer served: annotations may name classes defined later."""
        if self._types is None:
            self._types = answers.classes_of(self.function)
        return self._types

    def open(self, open_deck: Deck, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Crossing:
        request = {"arguments": self.bind(args, kwargs)}
        return open_deck.open(
            Call(boundary="tool", name=self.name, request=request, effect=self.effect)
        )


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(*, effect: Effect | None = None, name: str | None = None) -> Callable[[F], F]: ...
def tool(function: Any = None, /, *, effect: Effect | None = None, name: str | None = None) -> Any:
    """Record each call of a function: `@playhead.tool`, or `@playhead.tool(effect="read")`.

    `effect` says what a replay may do without asking: `read` changes nothing, `write` can be
    undone, `irreversible` cannot. Functions, coroutines, generators, async generators and methods
    of all kinds keep their signature, name and documentation.
    """
    if effect is not None and effect not in _EFFECTS:
        raise UsageError(f"effect is {effect!r}; expected one of {', '.join(_EFFECTS)}, or none.")
    if function is None:
        return functools.partial(_decorate, effect=effect, name=name)
    return _decorate(function, effect=effect, name=name)


def _decorate(function: Any, *, effect: Effect | None, name: str | None) -> Any:
    if isinstance(function, (staticmethod, classmethod)):
        method = isinstance(function, classmethod)
        return type(function)(_wrap(function.__func__, effect, name, method=method))
    if isinstance(function, type) or not callable(function):
        raise UsageError(
            f"{function!r} cannot be a tool: it is not a function. Decorate the function or method "
            "that does the work; tools of a framework are recorded by themselves."
        )
    return _wrap(function, effect, name, method=is_method(function))


def _wrap(
    function: Callable[..., Any], effect: Effect | None, name: str | None, *, method: bool
) -> Any:
    called = name or getattr(function, "__name__", None) or type(function).__name__
    declared = Declared(
        name=called, effect=effect, bind=binder(function, method=method), function=function
    )
    asked: Any = function
    if not (inspect.isroutine(function) or isinstance(function, functools.partial)):
        asked = type(function).__call__  # an object that can be called
    if inspect.isasyncgenfunction(asked):
        made = tool_streams.wrap_async_generator(declared, function)
    elif inspect.isgeneratorfunction(asked):
        made = tool_streams.wrap_generator(declared, function)
    elif inspect.iscoroutinefunction(asked):
        made = _wrap_coroutine(declared, function)
    else:
        made = _wrap_function(declared, function)
    made = functools.wraps(function)(made)
    made.__playhead_tool__ = declared  # type: ignore[attr-defined]  # functions take attributes
    return made


def _wrap_function(declared: Declared, function: Callable[..., Any]) -> Callable[..., Any]:
    name, effect, bind = declared.name, declared.effect, declared.bind

    def recorded(*args: Any, **kwargs: Any) -> Any:
        open_deck = deck.active()
        if open_deck is None or (claims and is_claimed(name, declared)):
            return function(*args, **kwargs)
        # What `Declared.open` does, spelled out: half of all tool calls are this one.
        arguments = bind(args, kwargs)
        at = where.asked(2)
        crossing = _open_known(open_deck, declared, arguments, at)
        if crossing is None:
            request = {"arguments": arguments}
            call = Call(boundary="tool", name=name, request=request, effect=effect, at=at)
            crossing = open_deck.open(call)
        if crossing.taped is not None:
            pacing.rest(crossing.taped.took_ns)
            return answers.serve(crossing, declared.types())
        with crossing:
            try:
                value = function(*args, **kwargs)
            except BaseException as error:
                crossing.raised(error)
                raise
        # A plain function that hands out somebody else's coroutine. inspect.isawaitable would ask an
        # abstract base class, which costs as much as the whole decorator.
        if hasattr(type(value), "__await__"):
            return _awaited(crossing, value)
        crossing.returned(value)
        return value

    return recorded


def _open_known(
    open_deck: Deck, declared: Declared, arguments: dict[str, Any], at: str
) -> Crossing | None:
    """A call that only its arguments tell from others of this tool; None: it goes the long way."""
    if open_deck.mode is not None:
        return None
    recorder = open_deck.recorder
    told = recorder.spell_value(arguments)
    if told is None:
        return None
    known = recorder.spelled.get(declared)
    if known is None:
        call = Call(
            boundary="tool",
            name=declared.name,
            request={"arguments": HOLE},
            effect=declared.effect,
        )
        known = (call, around(recorder, call.told(), 1))
        recorder.keep_spelled(declared, known)
    call, pieces = known
    if pieces is None:
        return None
    cause = None
    if open_deck.asked.anything:
        cause = open_deck.cause_of(
            Call(boundary="tool", name=call.name, request={"arguments": arguments})
        )
    return open_deck.open_spelled(call, told.join(pieces), at, cause)


def _wrap_coroutine(declared: Declared, function: Callable[..., Any]) -> Callable[..., Any]:
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        open_deck = deck.active()
        if open_deck is None or is_claimed(declared.name, declared):
            return await function(*args, **kwargs)
        crossing = declared.open(open_deck, args, kwargs)
        if crossing.taped is not None:
            await given_up(crossing)
            return answers.serve(crossing, declared.types())
        return await _awaited(crossing, function(*args, **kwargs))

    return recorded


async def _awaited(crossing: Crossing, awaitable: Any) -> Any:
    with crossing:
        try:
            value = await awaitable
        except BaseException as error:
            ended_by(crossing, error)
            raise
    crossing.returned(value)
    return value
