"""Merge the results of the shards of a batch. Pure.

Everything in merged results is a function of the verdicts, so that they are the same for every number of shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from playhead.errors import UsageError
from playhead.story.verdicts import Results, cases_of, verdict_from

# The parts of a request, in the words of the user.
_PARTS = {
    "selectors": "the selectors",
    "tapes": "the selected tapes",
    "options": "the options of the replays",
    "command": "the command after --",
    "invariants": "the invariants",
    "repeat": "--repeat",
    "allow_unproven": "--allow-unproven",
}


def results_from(members: Mapping[str, Any]) -> Results:
    """Read a report of `batch --json`. KeyError, TypeError, ValueError, AttributeError: it is not a report."""
    found = [verdict_from(one) for case in members["cases"] for one in case["verdicts"]]
    index, count = (int(one) for one in members["shard"])
    if not 1 <= index <= count:
        raise ValueError(f"{index}/{count} is not a shard")
    return Results(
        cases=cases_of(found, [case["tape"] for case in members["cases"]]),
        started_at=str(members["started_at"]),
        took_s=float(members["took_s"]),
        host=str(members["host"]),
        not_run=int(members["not_run"]),
        shard=(index, count),
        request={str(name): str(value) for name, value in members["request"].items()},
        stopped=members["stopped"],
        missing=tuple(str(one) for one in members["missing"]),
    )


def merge(reports: Sequence[tuple[str, Results]], min_pass_rate: float | None = None) -> Results:
    """Merge reports, each with the name of its file for messages. UsageError: they do not belong together."""
    first_name, first = reports[0]
    shards: dict[tuple[int, int], str] = {}
    for name, one in reports:
        _refuse_other_batch(first_name, first, name, one)
        if one.shard in shards:
            raise UsageError(
                f"{shards[one.shard]} and {name} are both reports of shard {_shown(one.shard)}. "
                "Pass one report per shard."
            )
        shards[one.shard] = name
    count = first.shard[1]
    verdicts = [verdict for _, one in reports for verdict in one.verdicts]
    tapes = sorted({verdict.tape for verdict in verdicts})
    absent = [(index, count) for index in range(1, count + 1) if (index, count) not in shards]
    return Results(
        cases=cases_of(verdicts, tapes),
        started_at=min(one.started_at for _, one in reports),
        # The sum of the work, not the wall time, which depends on the number of machines.
        took_s=sum(sorted(verdict.took_s for verdict in verdicts)),
        host=", ".join(
            sorted({host for _, one in reports for host in one.host.split(", ") if host})
        ),
        not_run=sum(one.not_run for _, one in reports),
        request=first.request,
        stopped="; ".join(sorted({one.stopped for _, one in reports if one.stopped})) or None,
        missing=tuple(_shown(one) for one in absent)
        + tuple(sorted({gone for _, one in reports for gone in one.missing})),
        min_pass_rate=min_pass_rate,
    )


def _refuse_other_batch(first_name: str, first: Results, name: str, one: Results) -> None:
    if one.shard[1] != first.shard[1]:
        raise UsageError(
            f"{first_name} is shard {_shown(first.shard)} and {name} is shard {_shown(one.shard)}: "
            "they come from batches with different numbers of shards."
        )
    names = sorted({*first.request, *one.request})
    parts = [part for part in names if first.request.get(part) != one.request.get(part)]
    if parts:
        differ = ", ".join(_PARTS.get(part, part) for part in parts)
        raise UsageError(
            f"{first_name} and {name} come from different batches: {differ} differ. "
            "Run every shard with the same arguments and the same tapes."
        )


def _shown(shard: tuple[int, int]) -> str:
    return f"{shard[0]}/{shard[1]}"
