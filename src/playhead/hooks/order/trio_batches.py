"""Make trio cancel, wake and run its tasks in a fixed order, while recording and in a replay.

trio reverses a batch of tasks with random numbers. These cannot come from the tape, because the batches of a replay are
not those of the recording. Its sets of tasks iterate in the order of memory addresses, which decides which task of a
scope is cancelled first. Knows trio's private generator, and where it keeps such sets.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.order.task_sets import with_added_sets

if TYPE_CHECKING:
    from types import ModuleType


class _InOrder:
    """Replaces trio's `random.Random`, so that trio always runs a batch in the order in which its tasks became ready.
    trio takes the tasks from the end of the batch, so it has to reverse each batch first.
    """

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def random(self) -> float:
        return 0.0

    def shuffle(self, tasks: list[Any]) -> None:
        """Keep the tasks in their order."""


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is trio."""
    core = sys.modules[f"{module.__name__}._core._run"]
    need(core, "_r")
    patches.replace(core, "_r", _InOrder)
    need(core, "CancelStatus")
    patches.replace(core.CancelStatus, "__init__", with_added_sets(("_tasks", "_children")))
    for owner in (module.Event, module.MemorySendChannel, module.MemoryReceiveChannel):
        patches.replace(owner, "__init__", with_added_sets(("_tasks",)))
