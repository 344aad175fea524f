"""Which failures broke an agent, on a terminal. Knows the results of trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Self

from rich.live import Live
from rich.table import Table
from rich.text import Text

from playhead.replay.modes.chaos import OUTCOMES, Result
from playhead.views.text.console import console
from playhead.views.text.safe import one_line

_STYLES = {
    "hung": "failed", "crashed": "failed", "wrong": "failed",
    "strayed": "interrupted", "recovered": "ok", "silent": "quiet",
}  # fmt: skip
_MOST_SHOWN = 30


class Progress:
    """How far it is, in one line of stderr that goes away."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._counts: Counter[str] = Counter()
        self._live = Live(self._line(), console=console(stderr=True), transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._live.stop()

    def tell(self, result: Result) -> None:
        self._counts[result.outcome] += 1
        self._live.update(self._line())

    def _line(self) -> Text:
        done = sum(self._counts.values())
        return Text(
            f"{done} of {self._total} faults tried · {_counted(self._counts)}", style="quiet"
        )


def print_chaos(run: str, results: Sequence[Result]) -> None:
    out = console()
    counts = Counter(one.outcome for one in results)
    broke = counts["hung"] + counts["crashed"] + counts["wrong"]
    verdict = (f"✗ broken by {broke} of {len(results)} faults", "failed")
    if not broke:
        verdict = (f"✓ not broken by any of {len(results)} faults", "ok")
    out.print(Text.assemble(verdict, f" · {run} · {_counted(counts)}"))
    shown = [one for one in results if one.outcome not in ("recovered", "silent")]
    if not shown:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="quiet")
    for heading in ("", "fault", "at", "what it did"):
        table.add_column(heading)
    for one in shown[:_MOST_SHOWN]:
        table.add_row(
            Text(one.outcome, style=_STYLES[one.outcome]),
            Text(one_line(one.trial.spec, 40)),
            Text(one_line(f"step {one.trial.step} {one.trial.name}", 30), style="quiet"),
            Text(one_line(one.detail, 120)),
        )
    out.print(table)
    if len(shown) > _MOST_SHOWN:
        out.print(Text(f"… and {len(shown) - _MOST_SHOWN} more; --json has all", style="quiet"))


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[one]} {one}" for one in OUTCOMES if counts[one]) or "none yet"
