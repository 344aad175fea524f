"""A mode that injects faults: it answers some calls with a failure and leaves the others to another mode.

The error bodies come from the LLM providers. A fault does not use up the taped call, so a retry gets its answer.
"""

from __future__ import annotations

import builtins
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from playhead.llm.providers import provider_or_default
from playhead.recording.calls import Call, Piece, Taped
from playhead.replay.modes.faults import Fault, fires, fits
from playhead.replay.modes.mixed import MixedMode
from playhead.replay.modes.taped_mode import ReplayMode

_REASONS = {
    429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout",
}  # fmt: skip


def answer_for(fault: Fault, call: Call, taped: Taped | None) -> Taped:
    """Return the answer for `call`. `taped` is the answer that the tape has for it, if any."""
    match = {"rung": "fault", "fault": fault.spec}
    if fault.kind == "status":
        return replace(_refusal(int(fault.argument), call), match=match)
    if fault.kind == "cut" and taped is not None and taped.head is not None:
        return replace(_broken_off(taped, int(fault.argument)), match=match)
    if fault.kind in ("reset", "cut"):
        return Taped(how="cut", match=match)
    if fault.kind == "raise":
        return Taped(how="raised", error=_error(fault.argument), match=match)
    if fault.kind == "return":
        value = _value(fault.argument, call.boundary)
        return Taped(how="returned", value=value, frozen=value, match=match)
    code = -9 if fault.kind == "kill" else int(fault.argument)
    return Taped(how="returned", value=code, frozen=code, facts={"exit_code": code}, match=match)


def slowed(taped: Taped, fault: Fault) -> Taped:
    """Return the taped answer, delayed by the fault's duration."""
    late = int(fault.argument)
    return replace(
        taped,
        took_ns=taped.took_ns + late,
        pieces=[replace(piece, at_ns=piece.at_ns + late) for piece in taped.pieces],
        facts={**taped.facts, "slow_ns": late},
        match={**taped.match, "fault": fault.spec},
    )


def _refusal(status: int, call: Call) -> Taped:
    provider = provider_or_default(str(call.facts.get("api", "")))
    body = json.dumps(provider.error_body(status, request_id="req_playhead_fault")).encode()
    headers = [
        ["content-type", "application/json"],
        ["content-length", str(len(body))],
        ["retry-after", "0"],
        # SDKs ignore a wait of 0 seconds and use their own backoff; they follow this header.
        ["retry-after-ms", "1"],
    ]
    head = {
        "status": status, "reason": _REASONS.get(status, ""), "http_version": "HTTP/1.1", "headers": headers,
    }  # fmt: skip
    return Taped(how="returned", head=head, pieces=[Piece(stream="body", data=body, at_ns=0)])


def _broken_off(taped: Taped, after: int) -> Taped:
    """Keep the first `after` events of a stream, or pieces of a body; never all of them."""
    body = [piece for piece in taped.pieces if piece.stream == "body"]
    parts = _events(taped, body) or [piece.data for piece in body]
    kept = parts[: min(after, len(parts) - 1)]
    if not kept and parts:
        kept = [parts[0][: len(parts[0]) // 2]]
    pieces = [piece for piece in taped.pieces if piece.stream == "sent"]
    pieces += [Piece(stream="body", data=data, at_ns=0) for data in kept]
    facts = {name: item for name, item in taped.facts.items() if name != "sizes"}
    return replace(
        taped, how="cut", error=None, frozen_error=None, pieces=pieces, facts=facts, dies=None
    )


def _events(taped: Taped, body: list[Piece]) -> list[bytes]:
    """Split a body into its server-sent events, because their split into network packets is arbitrary."""
    headers = {str(name).lower(): str(value) for name, value in taped.head.get("headers") or ()}
    if "event-stream" not in headers.get("content-type", "") or "content-encoding" in headers:
        return []
    whole = b"".join(piece.data for piece in body).replace(b"\r\n", b"\n")
    return [event + b"\n\n" for event in whole.split(b"\n\n") if event]


def _error(named: str) -> BaseException:
    """Build the exception that `TimeoutError`, `TimeoutError:no answer` or `httpx.ReadTimeout` names.

    The class is a builtin, or one of a module that the program has loaded.
    """
    name, _, message = named.partition(":")
    module, _, short = name.rpartition(".")
    found = getattr(sys.modules.get(module) if module else builtins, short, None)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        return RuntimeError(f"{name}: {message or 'injected by a fault'}")
    text = message or "injected by a fault"
    try:
        return found(text)
    except TypeError:  # the class expects other arguments
        made = found.__new__(found)
        made.args = (text,)
        return made


def _value(text: str, boundary: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if boundary != "mcp" or (isinstance(value, dict) and "content" in value):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "isError": False}


class FaultMode(ReplayMode):
    """The mode that wraps another mode and injects faults. `seed` decides the random choices."""

    def __init__(self, inner: ReplayMode, faults: Sequence[Fault], *, seed: int = 0) -> None:
        super().__init__(inner.recording, inner._recorder)  # noqa: SLF001  one family
        # The inner mode serves the calls, so its counts and divergences are those of the replay.
        self.matcher, self.partings = inner.matcher, inner.partings
        self._inner = inner
        self._faults = tuple(faults)
        self._seed = seed
        self._ordinals: Counter[str] = Counter()
        self._fired: Counter[int] = Counter()

    @property
    def rewrites(self) -> bool:
        return isinstance(self._inner, MixedMode) and self._inner.rewrites

    def rewrite(self, call: Call, body: bytes) -> bytes:
        return self._inner.rewrite(call, body) if isinstance(self._inner, MixedMode) else body

    def answer(self, call: Call, lane: str) -> Taped | None:
        fault = self._due(call)
        if fault is None:
            return self._inner.answer(call, lane)
        if fault.kind == "slow":
            taped = self._inner.answer(call, lane)
            return None if taped is None else self._slowed(taped, fault)
        return answer_for(fault, call, self._inner.look(call, lane))

    def _slowed(self, taped: Taped, fault: Fault) -> Taped:
        number = taped.match.get("number")
        if not isinstance(number, int):
            return slowed(taped, fault)  # a blocked tool's answer: nothing to give back
        call = self.matcher.calls[number - 1]
        return replace(slowed(taped, fault), give_back=partial(self.matcher.give_back, call))

    def _due(self, call: Call) -> Fault | None:
        """Return the first fault that fires at this call. Every call is counted, whether or not a fault fires."""
        with self._lock:
            self._ordinals[call.boundary] += 1
            ordinal = self._ordinals[call.boundary]
            for number, fault in enumerate(self._faults):
                if not fits(fault, call.boundary, call.name, ordinal):
                    continue
                fired = self._fired[number]
                if fires(fault, number=number, ordinal=ordinal, fired=fired, seed=self._seed):
                    self._fired[number] += 1
                    return fault
            return None
