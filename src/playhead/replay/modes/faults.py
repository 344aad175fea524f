"""Faults to inject into a replay: their syntax, when one fires, and name patterns. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from playhead.errors import UsageError
from playhead.replay.modes.replay_options import is_named

_HTTP = ("status", "cut", "reset", "slow", "raise")
_TOOL = ("raise", "return", "slow")
KINDS: dict[str, tuple[str, ...]] = {
    "llm": _HTTP,
    "http": _HTTP,
    "tool": _TOOL,
    "mcp": _TOOL,
    "process": ("exit", "kill", "raise"),
}
_SPEC = re.compile(r"(?P<boundary>[a-z]+):(?P<selector>[^=]+)=(?P<action>.+)", re.DOTALL)
_CHANCE = re.compile(r"@(\d+(?:\.\d+)?)%$")
_TIMES = re.compile(r"\*(\d+)$")
_AFTER = re.compile(r"cut(?:@(\d+))?")
_SLOW = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)")
_NANOSECONDS = {"ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One failure. `argument` depends on the kind: a status, a class, a value, a code, nanoseconds."""

    spec: str
    boundary: str
    selector: str
    kind: str
    argument: str = ""
    # The probability that the fault fires at a call that fits. None: it fires `times` times, or always.
    chance: float | None = None
    times: int | None = 1


def parse_fault(spec: str) -> Fault:
    """Parse a fault. UsageError says what is wrong with it."""
    hit = _SPEC.fullmatch(spec.strip())
    if hit is None:
        raise UsageError(
            f"{spec!r} is not a fault: expected BOUNDARY:WHICH=WHAT, as in llm:3=529, "
            "tool:search=raise:TimeoutError or process:git*=exit:128."
        )
    boundary, selector, action = hit["boundary"], hit["selector"], hit["action"]
    if boundary not in KINDS:
        raise UsageError(f"{spec!r}: {boundary!r} has no faults; {', '.join(KINDS)} have.")
    action, chance = _chance(action)
    action, times = _times(action)
    kind, argument = _action(spec, action)
    if kind not in KINDS[boundary]:
        known = ", ".join(KINDS[boundary])
        raise UsageError(f"{spec!r}: {boundary} does not support {kind!r}; it supports {known}.")
    if times is None and selector != "*":
        times = 1
    return Fault(
        spec=spec, boundary=boundary, selector=selector, kind=kind, argument=argument,
        chance=chance, times=times,
    )  # fmt: skip


def _chance(action: str) -> tuple[str, float | None]:
    hit = _CHANCE.search(action)
    return (action, None) if hit is None else (action[: hit.start()], float(hit[1]) / 100)


def _times(action: str) -> tuple[str, int | None]:
    hit = _TIMES.search(action)
    return (action, None) if hit is None else (action[: hit.start()], int(hit[1]))


def _action(spec: str, action: str) -> tuple[str, str]:
    if re.fullmatch(r"[45]\d\d", action):
        return "status", action
    if (cut := _AFTER.fullmatch(action)) is not None:
        return "cut", cut[1] or "1"
    name, colon, argument = action.partition(":")
    if name == "slow":
        hit = _SLOW.fullmatch(argument)
        if hit is None:
            raise UsageError(f"{spec!r}: slow takes a duration, as in slow:30s or slow:200ms.")
        return "slow", str(round(float(hit[1]) * _NANOSECONDS[hit[2]]))
    if name == "exit" and not re.fullmatch(r"\d{1,3}", argument):
        raise UsageError(f"{spec!r}: exit takes a code, as in exit:128.")
    if name in ("raise", "return") and not argument:
        raise UsageError(f"{spec!r}: {name} takes an argument, as in {name}:{_EXAMPLES[name]}.")
    if name in ("raise", "return", "exit") or (name in ("reset", "kill") and not colon):
        return name, argument
    raise UsageError(
        f"{spec!r}: {action!r} is not a failure; expected a status (529), cut@N, reset, slow:30s, "
        "raise:CLASS, return:JSON, exit:CODE or kill."
    )


_EXAMPLES = {"raise": "TimeoutError", "return": '{"error": "not found"}'}


def fits(fault: Fault, boundary: str, name: str, ordinal: int) -> bool:
    """Return whether this fault is for this call. `ordinal` counts calls of that boundary from 1.

    A number with `*N` also covers the calls after it, which are the retries.
    """
    if fault.boundary != boundary:
        return False
    if fault.selector.isdigit():
        return int(fault.selector) <= ordinal < int(fault.selector) + (fault.times or 1)
    return is_named(name, fault.selector)


def fires(fault: Fault, *, number: int, ordinal: int, fired: int, seed: int) -> bool:
    """Return whether a fault that fits fires, after it has `fired` this many times. The result is the same for the same
    seed.

    `number` is the position of the fault in the list: two equal faults must not always fire together.
    """
    if fault.chance is not None:
        return drawn(f"{seed}:{number}:{ordinal}") < fault.chance
    return fault.times is None or fired < fault.times


def drawn(key: str) -> float:
    """Return a number from 0 up to 1 that is always the same for the same text. Does not use `random`: that belongs to
    the program, and a replay answers it from the tape.
    """
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "big") / 2**56
