"""The environment in which shims are found first, and the one without them. Pure; knows PATH and SHELL.

Loaded by every Python of a run: it must not show its program where the shims are, and its children must
find them.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


SHIMS = "PLAYHEAD_SHIMS"


def put_first(env: Mapping[str, str], told: str) -> dict[str, str]:
    """The variables that change. `told` is the folder, and after a colon the shell of the user."""
    folder, _, shell = told.partition(os.pathsep)
    changed = {SHIMS: told}
    path = env.get("PATH")
    if path is not None and not _is_first(path, folder):
        changed["PATH"] = f"{folder}{os.pathsep}{path}"
    if shell and env.get("SHELL") == shell:
        changed["SHELL"] = os.path.join(folder, os.path.basename(shell))
    return changed


def take_out(env: Mapping[str, str], told: str) -> dict[str, str]:
    """The inverse: what a program has to find there."""
    folder, _, shell = told.partition(os.pathsep)
    changed = {}
    path = env.get("PATH")
    if path is not None and _is_first(path, folder):
        changed["PATH"] = path[len(folder) + 1 :]
    if shell and env.get("SHELL") == os.path.join(folder, os.path.basename(shell)):
        changed["SHELL"] = shell
    return changed


def _is_first(path: str, folder: str) -> bool:
    return path.startswith(folder + os.pathsep)
