"""`batch --budget`: decide whether a further replay may start. Knows money; not what a job does."""

from __future__ import annotations

from collections.abc import Iterator

from playhead.cli.batch.batch_job import Job
from playhead.story.verdicts import Verdict


class Budget:
    """A limit for the live calls of a whole batch, in US dollars. None: no limit.

    The first replay runs alone. After that a replay starts only if the rest of the budget covers the dearest replay
    so far, once for each replay in flight and once for itself.
    """

    def __init__(self, limit_usd: float | None) -> None:
        self._limit = limit_usd
        self._spent = 0.0
        self._dearest: float | None = None
        self._in_flight = 0
        # Why the batch ended before its last replay.
        self.stopped: str | None = None

    def book(self, verdict: Verdict, *, in_flight: bool = False) -> None:
        """Count a finished replay; `in_flight`: it was started by `limit`."""
        self._in_flight -= in_flight
        if self._limit is None:
            return
        usd = verdict.figures.get("spent_usd") or 0.0
        self._spent += usd
        self._dearest = max(usd, self._dearest or 0.0)
        if verdict.figures.get("unpriced"):
            self.stopped = (
                f"stopped by --budget: {verdict.tape} made live calls to a model without a known price. "
                "Set it in the config under [prices]."
            )

    def limit(self, jobs: Iterator[Job]) -> Iterator[Job | None]:
        """Yield the jobs, and None while the next one must wait for a verdict."""
        for job in jobs:
            while not self._may_start():
                if not self._in_flight:
                    self.stopped = self.stopped or self._exhausted()
                    return
                yield None
            self._in_flight += 1
            yield job

    def _may_start(self) -> bool:
        if self._limit is None:
            return True
        if self.stopped is not None:
            return False
        if self._dearest is None:
            return self._in_flight == 0
        return self._spent + self._dearest * (self._in_flight + 1) <= self._limit

    def _exhausted(self) -> str:
        return (
            f"stopped by --budget: ${self._spent:.4f} of ${self._limit:g} are spent, and a replay costs up to "
            f"${self._dearest or 0:.4f}. Run the same command with --resume and a higher --budget to continue."
        )
