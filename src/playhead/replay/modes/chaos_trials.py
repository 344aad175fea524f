"""Trials of `playhead chaos`: one fault at every step, in an order that a seed decides. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from playhead.events import BY_LIBRARY
from playhead.replay.matching.taped import TapedCall, TapedRun
from playhead.replay.modes.faults import drawn

# By how much an agent must fear them.
OUTCOMES = ("hung", "crashed", "wrong", "strayed", "recovered", "silent")

_AT: Mapping[str, tuple[str, ...]] = {
    "llm": ("529", "429", "500", "reset", "cut@3", "slow:700s"),
    "http": ("500", "429", "reset", "cut@1", "slow:700s"),
    "tool": ("raise:TimeoutError", "raise:ConnectionError", "raise:ValueError", "return:null"),
    "mcp": ("raise:TimeoutError", "return:{}"),
    "process": ("exit:1", "exit:127", "kill"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A replay with one fault, at a step of the run; `more` are the specs of faults beside it."""

    spec: str
    step: int
    boundary: str
    name: str
    more: tuple[str, ...] = ()

    @property
    def specs(self) -> tuple[str, ...]:
        return (self.spec, *self.more)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of a trial. `outcome` is one of these.

    hung       it did not end
    crashed    its exit code differs from the recorded one
    wrong      it left as the run did, but printed something else
    strayed    it asked for something that the tape does not have: another way, which only a live
               model can follow
    recovered  it came to the same end
    silent     the fault never fired
    """

    trial: Trial
    outcome: str
    detail: str = ""


def trials(recording: TapedRun, runs: int, seed: int, *, at_once: int = 1) -> list[Trial]:
    """At most `runs` of them: every step once before any step twice. Each has `at_once` faults, at different
    steps where there are enough.
    """
    rounds: list[tuple[int, float, Trial]] = []
    for call, ordinal in _outermost(recording):
        actions = sorted(
            _AT.get(call.boundary, ()), key=lambda one: drawn(f"{seed}:{call.number}:{one}")
        )
        for number, action in enumerate(actions):
            spec = f"{call.boundary}:{ordinal}={action}"
            trial = Trial(spec=spec, step=call.number, boundary=call.boundary, name=call.name)
            rounds.append((number, drawn(f"{seed}:{spec}"), trial))
    rounds.sort(key=lambda one: one[:2])
    found = [trial for _, _, trial in rounds]
    return [_joined(found, at, at_once, seed) for at in range(min(runs, len(found)))]


def _joined(found: list[Trial], at: int, at_once: int, seed: int) -> Trial:
    """The trial with faults of other steps beside its own, drawn by the seed."""
    chosen: dict[int, Trial] = {found[at].step: found[at]}
    for other in sorted(found, key=lambda one: drawn(f"{seed}:{at}:{one.spec}")):
        if len(chosen) >= at_once:
            break
        chosen.setdefault(other.step, other)
    _, *others = chosen.values()
    return replace(found[at], more=tuple(one.spec for one in others))


def _outermost(recording: TapedRun) -> Iterable[tuple[TapedCall, int]]:
    """The calls that a replay makes again, each with its number among those of its boundary."""
    inner = {call.ref for calls in recording.below.values() for call in calls}
    counts: Counter[str] = Counter()
    for call in recording.calls:
        if call.ref not in inner:
            counts[call.boundary] += 1
            # A library's look at the machine while it is loaded is not the agent's work.
            if BY_LIBRARY not in call.event.data:
                yield call, counts[call.boundary]


def result_of(trial: Trial, report: Mapping[str, Any] | None) -> TrialResult:
    """From the report of the replay; None: there is none, because it did not end."""
    if report is None:
        return TrialResult(trial=trial, outcome="hung", detail="It did not end in time.")
    if not report.get("faults"):
        return TrialResult(trial=trial, outcome="silent", detail="The fault never fired.")
    if report.get("recovered"):
        return TrialResult(trial=trial, outcome="recovered")
    parted = [one for one in report.get("divergences", ()) if one.get("kind") in ("missed", "leak")]
    if parted:
        asked = f"It made a call that is not on the tape: {parted[0].get('boundary')} {parted[0].get('name')}."
        return TrialResult(trial=trial, outcome="strayed", detail=asked)
    exits = report.get("exit_code", {})
    if exits.get("recorded") != exits.get("replayed"):
        left = f"Exit code {exits.get('replayed')} instead of {exits.get('recorded')}."
        return TrialResult(trial=trial, outcome="crashed", detail=left)
    told = [one for one in report.get("divergences", ()) if one.get("kind") == "output"]
    detail = str(told[0].get("detail", "")) if told else ""
    return TrialResult(trial=trial, outcome="wrong", detail=detail)


def ranked(results: Iterable[TrialResult]) -> list[TrialResult]:
    """Those that broke the agent most first."""
    return sorted(
        results, key=lambda one: (OUTCOMES.index(one.outcome), one.trial.step, one.trial.spec)
    )
