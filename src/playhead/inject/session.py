"""Hooks on, hooks off, for this process. Knows deck, lanes, boundaries and children; not how the run
began.
"""

from __future__ import annotations

from playhead import deck, lane_hooks
from playhead.boundaries import registry
from playhead.boundaries.children import set_carrier
from playhead.deck import Deck, Mode
from playhead.inject import children, rules
from playhead.recorder import Recorder


def start(
    recorder: Recorder,
    mode: Mode | None = None,
    *,
    terminals: tuple[int, ...] = (),
    seed: str | None = None,
) -> Deck:
    """Everything that crosses a boundary goes through the deck from here on; children join the run."""
    rules.post(recorder)
    made = Deck(recorder, mode)
    deck.activate(made)
    lane_hooks.install()
    registry.install()
    set_carrier(children.Carriage(str(recorder.run), terminals=terminals, seed=seed).carry)
    return made


def stop(made: Deck) -> None:
    """The inverse: every library is as it was. Lanes stay hooked: without a deck they cost nothing,
    and a run without interception may still be using them."""
    set_carrier(None)
    registry.uninstall()
    deck.deactivate(made)
