"""A mode with failures in it. Knows which faults are asked for; the rest is another mode's business.

A fault is answered without using up the taped call, so the call that tries again gets its answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from playhead.recording.calls import Call, Taped
from playhead.replay.modes.fault_answers import answer_for, slowed
from playhead.replay.modes.faults import Fault, fires, fits
from playhead.replay.modes.mixed import MixedMode
from playhead.replay.modes.taped_mode import ReplayMode


class FaultMode(ReplayMode):
    """Around another mode. `seed` decides where chance does."""

    def __init__(self, inner: ReplayMode, faults: Sequence[Fault], *, seed: int = 0) -> None:
        super().__init__(inner.recording, inner._recorder)  # noqa: SLF001  one family
        # The inner one serves, so its counts and partings are those of the replay.
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
            return slowed(taped, fault)  # a blocked tool's: there is nothing to give back
        call = self.matcher.calls[number - 1]
        return replace(slowed(taped, fault), give_back=partial(self.matcher.give_back, call))

    def _due(self, call: Call) -> Fault | None:
        """The first fault that fires at this call. Each call is counted, whatever becomes of it."""
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
