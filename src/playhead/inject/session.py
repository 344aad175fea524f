"""Hooks on, hooks off, for this process. Knows deck, lanes, boundaries and children; not how the run
began.
"""

from __future__ import annotations

from playhead import ambient, deck, lane_hooks
from playhead.boundaries import registry
from playhead.boundaries.children import set_carrier
from playhead.deck import Deck, Mode
from playhead.inject import children
from playhead.recorder import Recorder


def start(
    recorder: Recorder,
    mode: Mode | None = None,
    *,
    terminals: tuple[int, ...] = (),
    seed: str | None = None,
    source: ambient.Source | None = None,
) -> Deck:
    """Everything that crosses a boundary goes through the deck from here on; children join the run.

    `source` is where clock and entropy come from; without one, from the world and onto the tape.
    """
    made = Deck(recorder, mode)
    deck.activate(made)
    if source is None and recorder.level == "full":
        source = ambient.TapingSource(recorder)
    if source is not None:
        # Before the hooks: those of entropy reseed what was seeded before they came.
        ambient.begin(source)
    lane_hooks.install()
    registry.install()
    set_carrier(children.Carriage(str(recorder.run), terminals=terminals, seed=seed).carry)
    return made


def stop(made: Deck) -> None:
    """The inverse: every library is as it was. Lanes stay hooked: without a deck they cost nothing,
    and a run without interception may still be using them."""
    set_carrier(None)
    if (source := ambient.source()) is not None:
        ambient.end(source)
    registry.uninstall()
    deck.deactivate(made)
