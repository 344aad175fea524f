"""Functions that somebody had copied before we came: `from time import time`. Knows modules; not which
functions.

A program that starts under a recording copies what is already replaced. One that starts a recording
in its own middle has copies of the originals: those of its modules are found here, those in default
arguments and class bodies are not (docs/determinism.md).
"""

from __future__ import annotations

import sys

from playhead.hooks.guest import Patches
from playhead.host.lean import ModuleType
from playhead.recording import where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def replace_copies(patches: Patches, made: dict[int, Any]) -> None:
    """Put `made[id(original)]` in place of each original that a module of the program or of a package
    holds under whatever name.
    """
    loaded: list[Any] = list(sys.modules.values())  # where a host may put anything
    for module in loaded:
        if not isinstance(module, ModuleType) or not _is_of_the_program(module):
            continue
        for name, value in list(vars(module).items()):
            if id(value) in made:
                patches.replace(module, name, lambda original: made[id(original)])


def _is_of_the_program(module: ModuleType) -> bool:
    file = vars(module).get("__file__")
    if module.__name__ == "__main__":
        return True
    # Extension modules ask C for the time, not Python; the standard library's own copies serve its
    # own waiting.
    return isinstance(file, str) and not where.is_standard(file) and not where.is_own(file)
