"""What a list says of a run: counts, tokens, cost. Knows the model and one small cached file.

The cache (`summary.json` beside the manifest) is derived: deleted, it comes back. It holds only for
the manifest that it was made from, and is never kept for a run that still grows.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.errors import PlayheadError
from playhead.events import Status
from playhead.model import Prices, Story, tell
from playhead.tape.manifest import FILE as MANIFEST_FILE
from playhead.tape.reader import Tape

FILE = "summary.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    events: int = 0
    calls: int = 0
    llm_calls: int = 0
    tool_calls: int = 0
    failures: int = 0
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    unpriced: int = 0
    lost: int = 0
    holes: int = 0
    failure: str | None = None
    last_seam: str | None = None
    duration_s: float | None = None


def summarise(run: Path, status: Status, *, prices: Prices | None = None) -> Summary:
    """From the cache if it still holds, else from the tape."""
    cached = None if status == "running" else _cached(run)
    if cached is not None:
        return cached
    try:
        summary = of_story(tell(Tape(run), prices=prices))
    except PlayheadError:
        return Summary()  # a list shows the other runs; `show` and `verify` say what is wrong here
    if status != "running":
        keep(run, summary)
    return summary


def of_story(story: Story) -> Summary:
    totals = story.totals
    return Summary(
        events=totals.events,
        calls=totals.calls,
        llm_calls=totals.llm_calls,
        tool_calls=totals.tool_calls,
        failures=totals.failures,
        tokens=totals.tokens,
        input_tokens=totals.input_tokens,
        output_tokens=totals.output_tokens,
        cost_usd=totals.cost_usd,
        unpriced=totals.unpriced,
        lost=totals.lost,
        holes=totals.holes,
        failure=f"{story.failure.type}: {story.failure.message}" if story.failure else None,
        last_seam=story.last_seam,
        duration_s=round(story.duration_ns / 1e9, 6),
    )


def keep(run: Path, summary: Summary) -> None:
    """Best effort: a store that cannot be written to is still listed, only slower."""
    raw = json.dumps({"of": _stamp(run), **asdict(summary)}, ensure_ascii=False).encode()
    part = run / f"{FILE}.{clock.pid()}.part"
    try:
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, raw)
        finally:
            os.close(fd)
        os.replace(part, run / FILE)
    except OSError:
        return


def _cached(run: Path) -> Summary | None:
    try:
        members: Any = json.loads((run / FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(members, dict) or members.pop("of", None) != _stamp(run):
        return None
    try:
        return Summary(**members)
    except TypeError:  # written by another version of Playhead
        return None


def _stamp(run: Path) -> list[int]:
    """Changes whenever the manifest or the set of tapes does."""
    try:
        stat = (run / MANIFEST_FILE).stat()
        names = sum(1 for name in os.listdir(run) if name.startswith("tape"))
    except OSError:
        return []
    return [stat.st_mtime_ns, stat.st_size, names]
