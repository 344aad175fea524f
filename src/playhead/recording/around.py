"""Wrap a function so that a frame, such as a turn or a recording, encloses each call. Knows the four kinds of functions
(plain, coroutine, generator, async generator); does not know what the frames do.

A generator is enclosed as long as it is iterated. The code between two of its items belongs to the caller, so the frame
is entered and left with each step.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from functools import wraps
from typing import Any, Protocol, TypeVar

from playhead.recording import where

F = TypeVar("F", bound=Callable[..., Any])


class CallFrame(Protocol):
    """Encloses one call of a function. Its methods never raise, so the function's result or error passes."""

    def enter(self) -> None: ...

    def leave(self) -> None: ...

    def end(self, error: BaseException | None, value: Any = None) -> None: ...


# Begins a frame for the arguments of a call. Returns None if no frame encloses the call.
Begin = Callable[[Any, Any], "CallFrame | None"]


class _NoFrame:
    """Encloses nothing."""

    def enter(self) -> None:
        return

    def leave(self) -> None:
        return

    def end(self, error: BaseException | None, value: Any = None) -> None:
        return


_NO_FRAME = _NoFrame()


_ALWAYS: Sequence[object] = (True,)


def around(function: F, begin: Begin, recording: Sequence[object] = _ALWAYS) -> F:
    """Return `function` wrapped so that the frame of `begin(args, kwargs)` encloses each call. While `recording` is
    empty, the function is called directly: a program that is not recorded must not pay for the wrapper.
    """
    if inspect.iscoroutinefunction(function):
        wrapped = _coroutine(function, begin, recording)
    elif inspect.isasyncgenfunction(function):
        wrapped = _async_generator(function, begin)
    elif inspect.isgeneratorfunction(function):
        wrapped = _generator(function, begin)
    else:
        wrapped = _plain(function, begin, recording)
    return wraps(function)(wrapped)  # type: ignore[return-value]  # same signature by construction


def _plain(
    function: Callable[..., Any], begin: Begin, recording: Sequence[object]
) -> Callable[..., Any]:
    def framed(*args: Any, **kwargs: Any) -> Any:
        if not recording:
            return function(*args, **kwargs)
        frame = begin(args, kwargs)
        if frame is None:
            return function(*args, **kwargs)
        frame.enter()
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            frame.leave()
            frame.end(error)
            raise
        frame.leave()
        frame.end(None, value)
        return value

    return framed


def _coroutine(
    function: Callable[..., Any], begin: Begin, recording: Sequence[object]
) -> Callable[..., Any]:
    async def framed(*args: Any, **kwargs: Any) -> Any:
        if not recording:
            return await function(*args, **kwargs)
        frame = begin(args, kwargs)
        if frame is None:
            return await function(*args, **kwargs)
        frame.enter()
        try:
            value = await function(*args, **kwargs)
        except BaseException as error:
            frame.leave()
            frame.end(error)
            raise
        frame.leave()
        frame.end(None, value)
        return value

    return framed


def _generator(function: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    def framed(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        frame = begin(args, kwargs) or _NO_FRAME
        items = function(*args, **kwargs)
        step, given = items.send, None
        while True:
            frame.enter()
            try:
                item = step(given)
            except StopIteration as stop:
                frame.leave()
                frame.end(None, stop.value)
                return stop.value
            except BaseException as error:
                frame.leave()
                frame.end(error)
                raise
            frame.leave()
            try:
                step, given = items.send, (yield item)
            except BaseException as thrown:  # noqa: BLE001  (handed on to the function itself)
                step, given = items.throw, thrown

    return framed


def _async_generator(function: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    async def framed(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        frame = begin(args, kwargs) or _NO_FRAME
        items = function(*args, **kwargs)
        step, given = items.asend, None
        while True:
            frame.enter()
            try:
                item = await step(given)
            except StopAsyncIteration:
                frame.leave()
                frame.end(None)
                return
            except BaseException as error:
                frame.leave()
                frame.end(error)
                raise
            frame.leave()
            try:
                step, given = items.asend, (yield item)
            except BaseException as thrown:  # noqa: BLE001  (handed on to the function itself)
                step, given = items.athrow, thrown

    return framed


def place_of(function: Callable[..., Any]) -> str:
    """Return the place where the function begins, as JSON."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return '""'
    return where.quoted(code.co_filename, code.co_firstlineno, code.co_name)


def arguments_of(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return the arguments by name, without `self`, which is part of the program and not of the input."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {"args": list(args), "kwargs": dict(kwargs)}
    return {name: item for name, item in bound.items() if name not in ("self", "cls")}
