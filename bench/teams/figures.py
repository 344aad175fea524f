"""A measured figure beside its goal, and the table of all figures. Does not know what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the table. `met`: None if the row has no goal."""

    what: str
    measured: str
    goal: str = ""
    met: bool | None = None


def table(rows: Sequence[tuple[str, Figure, float]]) -> str:
    """Return the rows (part, figure, load of the machine at the end of the part) as a Markdown table."""
    said = {True: "met", False: "**missed**", None: ""}
    lines = ["| part | what | goal | measured | | load |", "|---|---|---|---|---|---|"]
    for part, one, load in rows:
        cells = (part, one.what, one.goal, one.measured, said[one.met], f"{load:.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
