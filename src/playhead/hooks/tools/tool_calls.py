"""A tool that a framework runs, through the one door. Knows how a call is opened, told and served;
which framework is its caller's business.

A framework's tool is often a function that is recorded already (`playhead.tool`), or another
framework's tool. So a framework's crossing leaves a claim: the first tool of that name, or that
declaration, directly inside it is the same thing and is not recorded a second time.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from playhead import events
from playhead.encoding.values import safe_str
from playhead.errors import Divergence
from playhead.events import Effect, Ref
from playhead.hooks import answers
from playhead.hooks.answers import Named
from playhead.hooks.guest import report
from playhead.recording import deck, lanes, pacing
from playhead.recording.deck import Call, Crossing, Deck

# How much longer than on the tape a call that was given up there may wait to be given up again.
_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a framework is about to run. `function`: the user's own, where the framework tells."""

    name: str
    arguments: Any
    library: str
    function: Any = None
    effect: Effect | None = None
    types: Callable[[], Named] = dict
    # The framework's own object back from the plain value that is on the tape.
    build: Callable[[Any], Any] | None = None
    # The part of the framework's object that is put on the tape.
    kept: Callable[[Any], Any] | None = None


class Claim:
    """One crossing's tool, until the function that does its work has shown up."""

    __slots__ = ("declared", "name")

    def __init__(self, name: str, declared: Any) -> None:
        self.name = name
        self.declared = declared


claims: dict[Ref, Claim] = {}


def is_claimed(name: str, declared: Any) -> bool:
    """Whether the framework that calls this tool now has recorded the call. True once a crossing:
    a tool that calls itself is a call of its own.
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


def perform(describe: Callable[[], Tool], live: Callable[[], Any]) -> Any:
    """Run a framework's tool, or serve it; straight through where nothing records."""
    open_deck = deck.active()
    tool = None if open_deck is None else _described(open_deck, describe)
    if open_deck is None or tool is None:
        return live()
    crossing = open_deck.open(_call(tool))
    if crossing.taped is not None:
        pacing.rest(crossing.taped.took_ns)
        return _serve(crossing, tool)
    with crossing:
        _claim(crossing, tool)
        try:
            value = live()
        except BaseException as error:
            crossing.raised(error)
            raise
        finally:
            _unclaim(crossing)
    _returned(crossing, tool, value)
    return value


async def perform_async(describe: Callable[[], Tool], live: Callable[[], Awaitable[Any]]) -> Any:
    open_deck = deck.active()
    tool = None if open_deck is None else _described(open_deck, describe)
    if open_deck is None or tool is None:
        return await live()
    crossing = open_deck.open(_call(tool))
    if crossing.taped is not None:
        await given_up(crossing)
        return _serve(crossing, tool)
    with crossing:
        _claim(crossing, tool)
        try:
            value = await live()
        except BaseException as error:
            ended_by(crossing, error)
            raise
        finally:
            _unclaim(crossing)
    _returned(crossing, tool, value)
    return value


def _described(open_deck: Deck, describe: Callable[[], Tool]) -> Tool | None:
    """The tool; None if its call is on the tape already, or cannot be put there."""
    try:
        tool = describe()
    except Exception as error:
        # The framework's object is not what we think. A recording goes on without it; in a replay
        # the tool must not run for real.
        if open_deck.mode is not None:
            raise
        why = f"{type(error).__name__}: {safe_str(error)}"
        report(events.HOLE, {"boundary": "tool", "what": "a tool call", "why": why})
        return None
    return None if is_claimed(tool.name, declared_of(tool.function)) else tool


def ended_by(crossing: Crossing, error: BaseException) -> None:
    """An async call has ended with `error`; a cancellation is the agent's doing, not the tool's."""
    if is_cancellation(error):
        crossing.left()
    else:
        crossing.raised(error)


def is_cancellation(error: BaseException) -> bool:
    return type(error).__name__ in ("CancelledError", "Cancelled") and not isinstance(
        error, Exception
    )


async def given_up(crossing: Crossing) -> None:
    """The answer comes after as long as it took. Where the agent gave up on the tape, it will do so
    again: wait for that, not for ever.
    """
    taped = crossing.taped
    if taped is None or taped.how != "left":
        await pacing.rest_async(0 if taped is None else taped.took_ns)
        return
    try:
        await _sleep(taped.took_ns / 1e9 + _PATIENCE_S)
    except BaseException:
        crossing.left()
        raise
    raise Divergence(
        f"On the tape the agent gave up waiting for {crossing.call.name} after "
        f"{taped.took_ns / 1e9:.1f} s; now it does not, and there is no answer to give it."
    )


async def _sleep(seconds: float) -> None:
    # Whichever of the two runs this code has been imported already.
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        await trio.sleep(seconds)
        return
    await sys.modules["asyncio"].sleep(seconds)


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
    """What `playhead.tool` says of a function that a framework may have wrapped once more."""
    return getattr(function, "__playhead_tool__", None)


def effect_of(function: Any) -> Effect | None:
    effect: Effect | None = getattr(declared_of(function), "effect", None)
    return effect


def effect_hinted(hints: Any) -> Effect | None:
    """MCP's hints, as attributes or members: readOnlyHint, destructiveHint. They are hints: what a
    tool does not say stays unknown.
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


def _claim(crossing: Crossing, tool: Tool) -> None:
    if crossing.seq is not None:
        claims[crossing.seq] = Claim(tool.name, declared_of(tool.function))


def _unclaim(crossing: Crossing) -> None:
    if crossing.seq is not None:
        claims.pop(crossing.seq, None)


def _serve(crossing: Crossing, tool: Tool) -> Any:
    named = {**answers.classes_of(tool.function), **tool.types()}
    return answers.serve(crossing, named, tool.build)


def _returned(crossing: Crossing, tool: Tool, value: Any) -> None:
    if tool.kept is None:
        crossing.returned(value)
        return
    try:
        kept = tool.kept(value)
    except Exception:  # noqa: BLE001  the object is not what we think: keep all of it
        kept = value
    crossing.returned(kept)
