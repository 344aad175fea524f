"""What `record` does for the library when a run has ended: the catalogue hears of it, and old runs go
where the config asks for that. Whatever fails here is said, and changes nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from playhead import clock
from playhead.config import Settings
from playhead.errors import PlayheadError

if TYPE_CHECKING:
    from playhead.story import Story


def remember(run: Path, story: Story, settings: Settings) -> None:
    """So that the next `list` need not read the tape."""
    from playhead.library.catalogue import Library
    from playhead.library.summarise import of_story
    from playhead.library.summary import stamp_of, stamp_of_prices

    if run.parent.name != "runs":
        return
    prices = stamp_of_prices(settings.sections.get("prices", {}))
    made = {run.name: (stamp_of(run, prices), of_story(story))}
    try:
        Library(run.parent.parent).keep_summaries(made)
    except PlayheadError:
        return  # the next list reads the tape, and says what is wrong


def prune_if_asked(run: Path, project: str, settings: Settings) -> str | None:
    """What went, in words, under `[retention] auto = true`; None: nothing."""
    if settings.sections.get("retention", {}).get("auto") is not True:
        return None
    from playhead.cli.keeping.retaining import configured_rules
    from playhead.library.catalogue import Filter, Library
    from playhead.library.retention import plan, remove, weighed
    from playhead.views.text.pruning import weight

    home = run.parent.parent
    try:
        rules = configured_rules(settings)
        found = list(Library(home).entries(Filter(project=project)))
        sized = weighed(found, needed=rules.max_bytes is not None)
        gone = list(remove(home, plan(sized, rules, clock.wall_ns())))
    except (PlayheadError, OSError) as error:
        return f"old runs are not pruned: {error}"
    return f"pruned {weight(gone)}, as [retention] asks" if gone else None
