"""The report of a replay in words, for the message of a failing test. Knows reports; does not know pytest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playhead.views.text.divergence_lines import plain_divergence

# A test's message has room for the first divergences; `playhead replay` prints more of them.
_SHOWN = 3


def explain(report: Mapping[str, Any]) -> str:
    """Return the verdict and the first divergences of a report that `replay` has returned."""
    found = [one for one in report.get("divergences") or () if not one.get("consequence")]
    shown = [plain_divergence(one, number=number) for number, one in enumerate(found[:_SHOWN], 1)]
    more = len(found) - len(shown)
    last = [f"… and {more} more"] if more > 0 else []
    return "\n\n".join([f"{report.get('verdict')}: replay of {report.get('run')}", *shown, *last])
