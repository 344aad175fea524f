"""Make trio run the tasks of a batch in a fixed order, while recording and in a replay.

trio shuffles or reverses a batch with random numbers. These cannot come from the tape, because the batches of a replay
are not those of the recording. Knows trio's private generator.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, need

if TYPE_CHECKING:
    from types import ModuleType


class _InOrder:
    """Replaces trio's `random.Random`, so that trio never reverses or shuffles a batch."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def random(self) -> float:
        return 1.0

    def shuffle(self, tasks: list[Any]) -> None:
        """Keep the tasks in their order."""


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is trio."""
    core = sys.modules[f"{module.__name__}._core._run"]
    need(core, "_r")
    patches.replace(core, "_r", _InOrder)
