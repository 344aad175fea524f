"""A summary from a tape. Knows the model; not where summaries are kept."""

from __future__ import annotations

from pathlib import Path

from playhead.errors import PlayheadError
from playhead.library.summary import Summary
from playhead.story import Prices, Story, tell
from playhead.tape.reader import Tape


def summarise(run: Path, *, prices: Prices | None = None) -> Summary:
    """Empty where the tape cannot be read at all: a list shows the other runs; `show` and `verify`
    say what is wrong here.
    """
    try:
        return of_story(tell(Tape(run), prices=prices))
    except PlayheadError:
        return Summary()


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
