"""Trials of `playhead chaos`: one fault at every step, in an order that a seed decides. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from playhead.events import BY_LIBRARY
from playhead.replay.matching.taped import TapedCall, TapedRun
from playhead.replay.modes.faults import drawn

# Worst first.
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
    """A replay with one fault, at a step of the run; `more` are the specs of additional faults."""

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

    hung       the replay did not end
    crashed    its exit code differs from the recorded one
    wrong      its exit code is the recorded one, but its output differs
    strayed    it made a call that the tape does not have; only a live model could answer it
    recovered  it ended as the recorded run did
    silent     the fault never fired
    """

    trial: Trial
    outcome: str
    detail: str = ""


def trials(recording: TapedRun, runs: int, seed: int, *, at_once: int = 1) -> list[Trial]:
    """Return at most `runs` trials: every step once before any step twice. Each has `at_once` faults, at different
    steps if there are enough.
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
    """Return the trial with additional faults of other steps, chosen by the seed."""
    chosen: dict[int, Trial] = {found[at].step: found[at]}
    for other in sorted(found, key=lambda one: drawn(f"{seed}:{at}:{one.spec}")):
        if len(chosen) >= at_once:
            break
        chosen.setdefault(other.step, other)
    _, *others = chosen.values()
    return replace(found[at], more=tuple(one.spec for one in others))


def _outermost(recording: TapedRun) -> Iterable[tuple[TapedCall, int]]:
    """Yield the calls that a replay makes again, each with its number among those of its boundary."""
    inner = {call.ref for calls in recording.below.values() for call in calls}
    counts: Counter[str] = Counter()
    for call in recording.calls:
        if call.ref not in inner:
            counts[call.boundary] += 1
            # A call that a library makes while it is loaded, to learn about the machine, is not the agent's work.
            if BY_LIBRARY not in call.event.data:
                yield call, counts[call.boundary]


def result_of(trial: Trial, report: Mapping[str, Any] | None) -> TrialResult:
    """Return the result from the report of the replay. The report is None if the replay did not end."""
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
    outputs = [one for one in report.get("divergences", ()) if one.get("kind") == "output"]
    detail = str(outputs[0].get("detail", "")) if outputs else ""
    return TrialResult(trial=trial, outcome="wrong", detail=detail)


def ranked(results: Iterable[TrialResult]) -> list[TrialResult]:
    """Return the results, worst first."""
    return sorted(
        results, key=lambda one: (OUTCOMES.index(one.outcome), one.trial.step, one.trial.spec)
    )
