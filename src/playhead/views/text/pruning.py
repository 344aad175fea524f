"""What a prune would free, or has freed, in lines for people. Knows the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from playhead.library.retention import Doomed, Sized
from playhead.views.text import words
from playhead.views.text.safe import one_line

_FEW = 20


def plan_lines(going: Sequence[Doomed], runs: Sequence[Sized], now_ns: int) -> Iterator[Text]:
    """Each run that would go, oldest first, and what that comes to."""
    for one in going[:_FEW]:
        age = words.age(one.entry.manifest.started_ns, now_ns)
        size, name = words.size(one.bytes), one_line(one.entry.manifest.name, 24)
        yield Text.assemble(
            f"  {one_line(one.entry.id, 40):<22} {name:<24} {age:>6} {size:>8}  ",
            (one.why, "quiet"),
        )
    if len(going) > _FEW:
        yield Text(f"  … and {words.count(len(going) - _FEW)} more", style="quiet")
    yield Text(f"Would delete {weight(going)} of {weight(runs)}.")


def weight(runs: Sequence[Sized] | Sequence[Doomed]) -> str:
    """`3 runs (1.2 GB)`."""
    total = words.size(sum(one.bytes for one in runs))
    noun = "run" if len(runs) == 1 else "runs"
    return f"{words.count(len(runs))} {noun} ({total})"
