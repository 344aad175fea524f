"""An exchange that could not be put on the tape: it is made all the same. Recording fails open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from playhead.hooks.http.exchange import Exchange, Pair
from playhead.recording.deck import Deck


class Unheard(Exchange):
    """Takes what it is told, and keeps none of it."""

    __slots__ = ()

    def __init__(self, open_deck: Deck) -> None:  # no crossing to build on
        self._deck = open_deck
        self.taped = None
        self.instead = None
        self.status = None
        self.ended = True
        self._last = b""

    @property
    def name(self) -> str:
        return "unheard"

    @property
    def is_llm(self) -> bool:
        return False

    def head(self, status: int, reason: str, version: str, headers: Iterable[Pair]) -> None:
        """Nobody is told."""

    def chunk(self, piece: bytes, stream: str = "body") -> None:
        """Nobody is told."""

    def heard(self, answer: bytes) -> None:
        """Nobody is told."""

    def _end(self, how: str, facts: dict[str, Any]) -> None:
        """Nobody is told."""
