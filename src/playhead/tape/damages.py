"""The list of what is damaged on a tape. Knows how long such a list may get; not tapes."""

from __future__ import annotations

from playhead.events import Damage

# A gigabyte of newlines is a thousand million damaged lines, and no better known by listing them.
MOST = 1000


class Damages(list[Damage]):
    """Each damage once, however often the tape is read. `more`: how many there was no room for."""

    def __init__(self) -> None:
        super().__init__()
        self._known: set[Damage] = set()
        self.more = 0

    @property
    def total(self) -> int:
        return len(self) + self.more

    def report(self, damage: Damage) -> None:
        if damage in self._known:
            return
        if len(self) >= MOST:
            self.more += 1
            return
        self._known.add(damage)
        self.append(damage)


def pass_over(_: Damage) -> None:
    """For a second look at what `verify` has told of."""
