"""The report of a replay in words, for the message of a failing test. Knows reports; does not know pytest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playhead.views.text.divergence_lines import plain_divergence

# A test's message has room for the first divergences; `playhead replay` prints more of them.
_SHOWN = 3
# In place of the advice of `playhead replay`, whose options a test does not have.
_ADVICE = (
    "If the change is intended, record the agent again, and replace this test: "
    "`playhead promote last tests/ --force`. "
    "A field that changes in every run can be ignored in [replay.ignore]."
)


def explain(report: Mapping[str, Any]) -> str:
    """Return the verdict and the first divergences of a report that `replay` has returned."""
    found = [one for one in report.get("divergences") or () if not one.get("consequence")]
    advised = [{**one, "advice": _ADVICE} if one.get("advice") else one for one in found[:_SHOWN]]
    shown = [plain_divergence(one, number=number) for number, one in enumerate(advised, 1)]
    more = len(found) - len(shown)
    last = [f"… and {more} more"] if more > 0 else []
    return "\n\n".join([f"{report.get('verdict')}: replay of {report.get('run')}", *shown, *last])
