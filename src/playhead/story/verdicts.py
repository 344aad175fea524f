"""The results of a batch: a verdict per replay, a case per tape, and totals. Data only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from playhead.story.invariants import Broken
from playhead.story.pass_rates import PassRate, pass_rate_of

Outcome = Literal["passed", "diverged", "broken", "unusable", "error"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
# Exit codes of a batch: failures of the agent take precedence over tapes that could not be replayed.
EXIT_CODES: tuple[tuple[Outcome, int], ...] = (
    ("diverged", 3),
    ("broken", 5),
    ("unusable", 4),
    ("error", 1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One replay of one tape. `answer` identifies equal results; `said` is the end of the output, kept for failures."""

    tape: str
    name: str
    outcome: Outcome
    round: int = 1
    replay: str | None = None
    why: tuple[str, ...] = ()
    broken: tuple[Broken, ...] = ()
    took_s: float = 0.0
    figures: Mapping[str, float | None] = field(default_factory=dict)
    answer: str | None = None
    said: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def verdict_from(members: Mapping[str, Any]) -> Verdict:
    """Read a verdict from JSON. KeyError, TypeError, ValueError: it is not a verdict."""
    outcome = next((one for one in OUTCOMES if one == members["outcome"]), None)
    if outcome is None:
        raise ValueError(f"{members['outcome']!r} is not an outcome")
    return Verdict(
        tape=str(members["tape"]),
        name=str(members["name"]),
        outcome=outcome,
        round=int(members.get("round", 1)),
        replay=members.get("replay"),
        why=tuple(str(one) for one in members.get("why", ())),
        broken=tuple(Broken(**one) for one in members.get("broken", ())),
        took_s=float(members.get("took_s", 0.0)),
        figures=dict(members.get("figures", {})),
        answer=members.get("answer"),
        said=str(members.get("said", "")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All replays of one tape."""

    tape: str
    name: str
    verdicts: tuple[Verdict, ...]

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of the replays."""
        had = {one.outcome for one in self.verdicts}
        return next((outcome for outcome, _ in EXIT_CODES if outcome in had), "passed")

    @property
    def passes(self) -> int:
        return sum(one.outcome == "passed" for one in self.verdicts)

    @property
    def pass_rate(self) -> float:
        return self.passes / len(self.verdicts)

    @property
    def judged(self) -> int:
        """The number of replays that are evidence about the agent: an unusable tape is none."""
        return sum(one.outcome != "unusable" for one in self.verdicts)

    @property
    def flaky(self) -> bool:
        """The replays had different outcomes."""
        return len({one.outcome for one in self.verdicts}) > 1

    @property
    def answers(self) -> int:
        """The number of different results."""
        return len({one.answer for one in self.verdicts if one.answer is not None})

    @property
    def took_s(self) -> float:
        return sum(one.took_s for one in self.verdicts)

    @property
    def worst(self) -> Verdict:
        return next(one for one in self.verdicts if one.outcome == self.outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A finished batch. `not_run`: tapes without a replay, `stopped`: why the batch ended before its last replay.

    `request` has a digest of each part of the request; reports with equal digests can be merged.
    """

    cases: tuple[Case, ...]
    started_at: str
    took_s: float
    host: str = ""
    not_run: int = 0
    shard: tuple[int, int] = (1, 1)
    request: Mapping[str, str] = field(default_factory=dict)
    stopped: str | None = None
    # Shards whose report was not given to `batch merge`.
    missing: tuple[str, ...] = ()
    min_pass_rate: float | None = None

    def count(self, outcome: Outcome) -> int:
        return sum(case.outcome == outcome for case in self.cases)

    @property
    def counts(self) -> dict[Outcome, int]:
        return {outcome: self.count(outcome) for outcome in OUTCOMES}

    @property
    def pass_rate(self) -> PassRate | None:
        """The pass rate over all replays of usable tapes."""
        return pass_rate_of([(case.passes, case.judged) for case in self.cases])

    @property
    def spent_usd(self) -> float:
        """The price of live calls."""
        spent = sum(one.figures.get("spent_usd") or 0.0 for one in self.verdicts)
        return round(spent, 6)

    @property
    def verdicts(self) -> list[Verdict]:
        return [one for case in self.cases for one in case.verdicts]

    @property
    def exit_code(self) -> int:
        """The exit code. If a minimum pass rate is given and reached, failures are tolerated. Unusable tapes never
        are.
        """
        code = next((code for outcome, code in EXIT_CODES if self.count(outcome)), 0)
        found = self.pass_rate
        if self.min_pass_rate is not None and found is not None:
            # Not the rounded rate: 2 of 3 is less than 0.6667.
            reached = found.passes >= self.min_pass_rate * found.replays
            unusable = dict(EXIT_CODES)["unusable"] if self.count("unusable") else 0
            code = unusable if reached else code
        return code or int(self.is_incomplete)

    @property
    def is_incomplete(self) -> bool:
        return self.stopped is not None or bool(self.missing)

    @property
    def facts(self) -> list[str]:
        """Sentences for people: the pass rate of repeated replays, money, and what is missing."""
        lines: list[str] = []
        found = self.pass_rate
        wanted = self.min_pass_rate
        if found is not None and (wanted is not None or found.replays > len(self.cases)):
            asked = "" if wanted is None else f"; expected at least {wanted:.1%}"
            lines.append(f"{found}{asked}")
        if self.spent_usd:
            lines.append(f"live calls cost ${self.spent_usd:.4f}")
        if self.stopped:
            lines.append(self.stopped)
        if self.missing:
            lines.append(f"no report of shard {', '.join(self.missing)}")
        return lines

    @property
    def failing(self) -> list[Case]:
        return [case for case in self.cases if case.outcome != "passed"]

    def as_json(self) -> dict[str, Any]:
        found = self.pass_rate
        return {
            "exit_code": self.exit_code,
            "started_at": self.started_at,
            "took_s": round(self.took_s, 3),
            "host": self.host,
            "shard": list(self.shard),
            "request": dict(self.request),
            "counts": self.counts,
            "not_run": self.not_run,
            "stopped": self.stopped,
            "missing": list(self.missing),
            "flaky": sum(case.flaky for case in self.cases),
            "pass_rate": None if found is None else found.as_json(),
            "min_pass_rate": self.min_pass_rate,
            "spent_usd": self.spent_usd,
            "cases": [_case_json(case) for case in self.cases],
        }


def _case_json(case: Case) -> dict[str, Any]:
    found = pass_rate_of([(case.passes, len(case.verdicts))])
    return {
        "tape": case.tape,
        "name": case.name,
        "outcome": case.outcome,
        "passes": case.passes,
        "rounds": len(case.verdicts),
        "pass_rate": round(case.pass_rate, 4),
        "interval": None if found is None else [found.low, found.high],
        "pass_hat": [] if found is None else list(found.pass_hat),
        "flaky": case.flaky,
        "answers": case.answers,
        "verdicts": [one.as_json() for one in case.verdicts],
    }


def cases_of(verdicts: Iterable[Verdict], order: Sequence[str]) -> tuple[Case, ...]:
    """Group verdicts by tape, in the order in which the tapes were chosen."""
    by_tape: dict[str, list[Verdict]] = {tape: [] for tape in order}
    for one in verdicts:
        by_tape.setdefault(one.tape, []).append(one)
    return tuple(
        Case(
            tape=tape,
            name=found[0].name,
            verdicts=tuple(sorted(found, key=lambda one: one.round)),
        )
        for tape, found in by_tape.items()
        if found
    )
