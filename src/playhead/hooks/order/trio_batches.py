"""trio runs the tasks of a batch in random order, or in reverse. Recorded runs and replays keep the order.

Batches in a replay are not those of the recording, so the random numbers cannot come from the tape. Knows
trio's private generator.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, need

if TYPE_CHECKING:
    from types import ModuleType


class _InOrder:
    """In place of a `random.Random`: nothing is reversed, nothing is shuffled."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def random(self) -> float:
        return 1.0

    def shuffle(self, tasks: list[Any]) -> None:
        """They stay as they are."""


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is trio."""
    core = sys.modules[f"{module.__name__}._core._run"]
    need(core, "_r")
    patches.replace(core, "_r", _InOrder)
