"""Provide `@playhead.tool`, which records the calls of a function as tool calls, and serves them in a replay.

If nothing records, the function is called as if it had no decorator. Knows functions and coroutines; generators are in
`tool_streams`, and each framework has its own module.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from playhead.errors import UsageError
from playhead.events import Effect
from playhead.hooks import answers
from playhead.hooks.answers import Named
from playhead.hooks.tools import tool_streams
from playhead.hooks.tools.tool_calls import Bind, binder, claims, is_claimed, is_method
from playhead.recording import deck, where
from playhead.recording.adapter import Adapter
from playhead.recording.deck import Call, Crossing

F = TypeVar("F", bound=Callable[..., Any])

_EFFECTS = ("read", "write", "irreversible")


class Declared:
    """The declaration of a decorated function; frameworks that wrap the function look it up."""

    __slots__ = ("_types", "bind", "effect", "function", "name")

    def __init__(
        self, name: str, effect: Effect | None, bind: Bind, function: Callable[..., Any]
    ) -> None:
        self.name = name
        self.effect = effect
        self.bind = bind
        self.function = function
        self._types: Named | None = None

    def types(self) -> Named:
        """Looked up when the first answer is served: annotations may name classes defined later."""
        if self._types is None:
            self._types = answers.classes_of(self.function)
        return self._types

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], at: str | None = None) -> Call:
        """`at` is the caller's place in the program; without it, the crossing looks for it."""
        request = {"arguments": self.bind(args, kwargs)}
        return Call(boundary="tool", name=self.name, request=request, effect=self.effect, at=at)


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(*, effect: Effect | None = None, name: str | None = None) -> Callable[[F], F]: ...
def tool(function: Any = None, /, *, effect: Effect | None = None, name: str | None = None) -> Any:
    """Record each call of a function as a tool call, and answer it from the tape in a replay.

        @playhead.tool(effect="read")
        def search(query: str) -> list[str]: ...

    Functions, coroutines, generators, async generators and methods of all kinds keep their signature, name
    and documentation.

    Args:
        effect: What a call does to the world: `read` changes nothing, `write` can be undone, `irreversible`
            cannot. A replay with a live model calls only tools that read, unless others are allowed.
        name: The tool's name. By default the function's.
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
            "that does the work; tools of a framework are recorded without a decorator."
        )
    return _wrap(function, effect, name, method=is_method(function))


def _wrap(
    function: Callable[..., Any], effect: Effect | None, name: str | None, *, method: bool
) -> Any:
    called = name or getattr(function, "__name__", None) or type(function).__name__
    declared = Declared(called, effect, binder(function, method=method), function)
    code: Any = function
    if not (inspect.isroutine(function) or isinstance(function, functools.partial)):
        code = type(function).__call__  # an object that can be called
    if inspect.isasyncgenfunction(code):
        made = tool_streams.wrap_async_generator(declared, function)
    elif inspect.isgeneratorfunction(code):
        made = tool_streams.wrap_generator(declared, function)
    elif inspect.iscoroutinefunction(code):
        made = _wrap_coroutine(declared, function)
    else:
        made = _wrap_function(declared, function)
    made = functools.wraps(function)(made)
    made.__playhead_tool__ = declared  # type: ignore[attr-defined]  # functions take attributes
    return made


class _FunctionCall(Adapter):
    """One call of a decorated function or coroutine."""

    __slots__ = ("_args", "_declared", "_kwargs")

    def __init__(self, declared: Declared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._declared = declared
        self._args = args
        self._kwargs = kwargs

    def live(self, crossing: Crossing) -> Any:
        return self._declared.function(*self._args, **self._kwargs)

    def serve(self, crossing: Crossing) -> Any:
        return answers.serve(crossing, self._declared.types())


class _PlainCall(_FunctionCall):
    """One call of a plain function, which may hand out another function's coroutine."""

    __slots__ = ()

    def observe(self, crossing: Crossing, result: Any) -> Any:
        # inspect.isawaitable would look the class up in an abstract base class, which costs as much as
        # the whole decorator.
        if hasattr(type(result), "__await__"):
            return _awaited(crossing, result)
        crossing.returned(result)
        return result


def _wrap_function(declared: Declared, function: Callable[..., Any]) -> Callable[..., Any]:
    name, find = declared.name, deck.declared

    def recorded(*args: Any, **kwargs: Any) -> Any:
        open_deck = find()
        if open_deck is None or (claims and is_claimed(name, declared)):
            return function(*args, **kwargs)
        # Looked up here, one frame from the caller: each frame between costs as much as the look-up.
        call = declared.call(args, kwargs, where.asked(2))
        return open_deck.perform(call, _PlainCall(declared, args, kwargs))

    return recorded


def _wrap_coroutine(declared: Declared, function: Callable[..., Any]) -> Callable[..., Any]:
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        open_deck = deck.declared()
        if open_deck is None or is_claimed(declared.name, declared):
            return await function(*args, **kwargs)
        return await open_deck.perform_async(
            declared.call(args, kwargs), _FunctionCall(declared, args, kwargs)
        )

    return recorded


async def _awaited(crossing: Crossing, awaitable: Any) -> Any:
    with crossing:
        try:
            value = await awaitable
        except BaseException as error:
            crossing.failed(error)
            raise
    crossing.returned(value)
    return value
