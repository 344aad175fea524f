"""The closing line of a recording: what is on the tape, in one line or as JSON."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from playhead import config
from playhead.errors import PlayheadError
from playhead.launch.command import Recorded
from playhead.launch.connections import advice_for
from playhead.views.text import words

if TYPE_CHECKING:
    from playhead.story import Story, Totals


# A longer tape is not read again just to print its totals.
_LONGEST_TOLD = 64 * 1024 * 1024


def load_model() -> ModuleType:
    """Import the story while the command runs: it takes a tenth of a second to load."""
    import playhead.story

    return playhead.story


def counted(done: Recorded, settings: config.Settings) -> Totals | None:
    """Totals of the tape, for the closing line and the catalogue. None: unreadable, or too long."""
    from playhead.story import Prices, tell
    from playhead.tape.reader import Tape

    if _size(done) > _LONGEST_TOLD:
        return None
    prices = Prices(overrides=settings.sections.get("prices", {}))
    try:
        story = tell(Tape(done.run.path), prices=prices)
    except PlayheadError:
        return None  # the command's exit code matters more than our closing line
    update_catalogue(done.run.path, story, settings)
    return story.totals


def note(done: Recorded, totals: Totals | None, name: str = "last") -> str:
    """The closing line. `name`: how to name the run; empty: by its id."""
    manifest = done.run.manifest
    parts = [f"● recorded {manifest.run}"]
    if manifest.status != "ok":
        parts.append(f"{manifest.status} ({_ending(done.ended.code)})")
    if totals is not None:
        parts.append(plural(totals.calls, "call"))
        if totals.llm_calls:
            parts.append(f"{totals.llm_calls:,} LLM")
        if totals.tokens is not None:
            parts.append(f"{words.count(totals.tokens)} tokens")
        if totals.cost_usd is not None:
            parts.append(words.money(totals.cost_usd, at_least=bool(totals.unpriced)))
        if totals.holes:
            parts.append(plural(totals.holes, "hole"))
    parts.append(words.duration(manifest.duration_s))
    if manifest.lost:
        parts.append(f"{plural(manifest.lost, 'event')} lost")
    if done.plain not in (None, "small", "not asked for"):
        why = words.size(_size(done)) if done.plain == "large" else done.plain
        parts.append(f"not compressed ({why})")
    if partial := manifest.extra.get("partial"):
        return " · ".join([*parts, f"{partial}, so it cannot be replayed. {advice_for(partial)}"])
    if manifest.extra.get("connections") and done.ended.error is None:
        parts.append("connections not watched")
    return " · ".join([*parts, f"playhead show {name or manifest.run}"])


def as_members(done: Recorded, totals: Totals | None) -> dict[str, Any]:
    manifest = done.run.manifest
    return {
        "run": manifest.run,
        "path": str(done.run.path),
        "name": manifest.name,
        "status": manifest.status,
        "exit_code": done.ended.exit_code,
        "duration_s": manifest.duration_s,
        "events": manifest.events,
        "lost": manifest.lost,
        "calls": None if totals is None else totals.calls,
        "llm_calls": None if totals is None else totals.llm_calls,
        "tokens": None if totals is None else totals.tokens,
        "cost_usd": None if totals is None else totals.cost_usd,
        "holes": None if totals is None else totals.holes,
        "sealed": done.plain is None,
        "left_plain": done.plain,
    }


def say(line: str) -> None:
    """Write to descriptor 2 and ignore failures: the command may have closed or broken it."""
    try:
        os.write(2, f"{line}\n".encode(sys.getfilesystemencoding(), "replace"))
    except OSError:
        return


def update_catalogue(run: Path, story: Story, settings: config.Settings) -> None:
    """Store the summary in the catalogue, so that the next `list` does not read the tape."""
    from playhead.library.catalogue import Library
    from playhead.library.catalogue_url import catalogue_url
    from playhead.library.digest import of_story
    from playhead.library.run_rows import stamp_of, stamp_of_prices

    if run.parent.name != "runs":
        return
    try:
        if catalogue_url(run.parent.parent) is not None:
            return  # recording never waits for a network; the next `list` writes it there
    except PlayheadError:
        return
    prices = stamp_of_prices(settings.sections.get("prices", {}))
    made = {run.name: (stamp_of(run, prices), of_story(story))}
    try:
        Library(run.parent.parent).keep_summaries(made)
    except PlayheadError:
        return  # the next `list` reads the tape and reports the problem


def _size(done: Recorded) -> int:
    return sum(one.bytes for one in done.run.manifest.segments)


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
