"""Record and replay tool calls. Each framework's own hook knows where that framework runs its tools.

A framework's tool is often a function that is recorded already (`playhead.tool`), or another framework's tool.
So a framework's call leaves a claim: the first tool of that name, or that declaration, directly inside it is
the same call and is not recorded a second time.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from playhead.events import Effect, Ref
from playhead.hooks import answers
from playhead.hooks.answers import Named
from playhead.recording import deck, lanes
from playhead.recording.adapter import Adapter
from playhead.recording.deck import Call, Crossing, Deck

Bind = Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]


# `inspect.Signature.bind` costs more than recording the call. So the parameter names are computed once per
# function, and binding the arguments of a call is one zip.
def binder(function: Callable[..., Any], *, method: bool) -> Bind:
    """Return `bind(args, kwargs)`, which maps parameter names to arguments. `method`: the first argument is the
    object, which is part of the program and is left out. Defaults are left out, because they are not in the
    request.

    Never raises: the function itself rejects arguments that do not fit.
    """
    names, rest = _parameters(function)
    if method:
        names = names[1:]
    count, first = len(names), int(method)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        given = args[first:] if first else args
        if not given:
            return kwargs
        arguments = dict(zip(names, given))  # noqa: B905  strict= costs more than the zip
        if len(given) > count:
            arguments[rest] = list(given[count:])
        if kwargs:
            arguments.update(kwargs)
        return arguments

    return bind


def is_method(function: Callable[..., Any]) -> bool:
    """Return whether a plain function is defined in a class and takes the object as its first argument."""
    home, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    if not home or home.endswith("<locals>"):
        return False
    names, _ = _parameters(function)
    return bool(names) and names[0] in ("self", "cls")


def _parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], str]:
    """Return the names of positional parameters, and the name of `*args`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # in C, without a signature
        return (), "args"
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = tuple(one.name for one in parameters if one.kind in positional)
    rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), "args")
    return names, rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a framework is about to run. `function` is the user's own function, if the framework has it."""

    name: str
    arguments: Any
    library: str
    function: Any = None
    effect: Effect | None = None
    types: Callable[[], Named] = dict
    # Rebuilds the framework's own object from the plain value that is on the tape.
    build: Callable[[Any], Any] | None = None
    # The part of the framework's object that is put on the tape.
    kept: Callable[[Any], Any] | None = None


class Claim:
    """A framework's tool call, until the function that does its work is called."""

    __slots__ = ("declared", "name")

    def __init__(self, name: str, declared: Any) -> None:
        self.name = name
        self.declared = declared


claims: dict[Ref, Claim] = {}


def is_claimed(name: str, declared: Any) -> bool:
    """Return whether the framework that calls this tool has already recorded the call. True once per call of the
    framework: a tool that calls itself makes a second call.
    """
    if not claims:
        return False
    enclosing = lanes.enclosing.get()
    if enclosing is None:
        return False
    claim = claims.get(enclosing)
    if claim is None:
        return False
    if claim.name != name and (declared is None or claim.declared is not declared):
        return False
    return claims.pop(enclosing, None) is not None


class _ToolCall(Adapter):
    """One run of a framework's tool."""

    __slots__ = ("_live", "_tool")

    def __init__(self, tool: Tool, live: Callable[[], Any]) -> None:
        self._tool = tool
        self._live = live

    def live(self, crossing: Crossing) -> Any:
        self._claim(crossing)
        try:
            return self._live()
        finally:
            self._release(crossing)

    def serve(self, crossing: Crossing) -> Any:
        tool = self._tool
        named = {**answers.classes_of(tool.function), **tool.types()}
        return answers.serve(crossing, named, tool.build)

    def observe(self, crossing: Crossing, result: Any) -> Any:
        keep = self._tool.kept
        try:
            kept = result if keep is None else keep(result)
        except Exception:  # noqa: BLE001  the object is not what we think: keep all of it
            kept = result
        crossing.returned(kept)
        return result

    def _claim(self, crossing: Crossing) -> None:
        if crossing.seq is not None:
            claims[crossing.seq] = Claim(self._tool.name, declared_of(self._tool.function))

    def _release(self, crossing: Crossing) -> None:
        if crossing.seq is not None:
            claims.pop(crossing.seq, None)


class _AsyncToolCall(_ToolCall):
    __slots__ = ()

    async def live(self, crossing: Crossing) -> Any:
        # Claimed until the coroutine has ended, not until it has been made.
        self._claim(crossing)
        try:
            return await self._live()
        finally:
            self._release(crossing)


def perform(describe: Callable[[], Tool], live: Callable[[], Any]) -> Any:
    """Run a framework's tool through the deck, or directly if nothing records."""
    open_deck = deck.active()
    tool = None if open_deck is None else _described(open_deck, describe)
    if open_deck is None or tool is None:
        return live()
    return open_deck.perform(_call(tool), _ToolCall(tool, live))


async def perform_async(describe: Callable[[], Tool], live: Callable[[], Awaitable[Any]]) -> Any:
    open_deck = deck.active()
    tool = None if open_deck is None else _described(open_deck, describe)
    if open_deck is None or tool is None:
        return await live()
    return await open_deck.perform_async(_call(tool), _AsyncToolCall(tool, live))


def _described(open_deck: Deck, describe: Callable[[], Tool]) -> Tool | None:
    """Return the tool; None if its call is already on the tape, or cannot be described."""
    tool = open_deck.describe(describe, "a tool call", "tool")
    if tool is None or is_claimed(tool.name, declared_of(tool.function)):
        return None
    return tool


def _call(tool: Tool) -> Call:
    effect = tool.effect or effect_of(tool.function)
    return Call(
        boundary="tool",
        name=tool.name,
        request={"arguments": tool.arguments},
        effect=effect,
        facts={"library": tool.library},
    )


def declared_of(function: Any) -> Any:
    """Return the declaration of a `playhead.tool` function, which a framework may have wrapped again."""
    return getattr(function, "__playhead_tool__", None)


def effect_of(function: Any) -> Effect | None:
    effect: Effect | None = getattr(declared_of(function), "effect", None)
    return effect


def effect_hinted(hints: Any) -> Effect | None:
    """Return the effect that MCP's hints declare (readOnlyHint, destructiveHint; as attributes or members). A tool
    without hints has no known effect.
    """
    read_only, destructive = _hint(hints, "readOnlyHint"), _hint(hints, "destructiveHint")
    if read_only is True:
        return "read"
    if destructive is True:
        return "irreversible"
    return "write" if read_only is False or destructive is False else None


def _hint(hints: Any, name: str) -> Any:
    if isinstance(hints, dict):
        return hints.get(name)
    snake = name.replace("O", "_o").replace("H", "_h")
    return getattr(hints, name, None) if hasattr(hints, name) else getattr(hints, snake, None)
