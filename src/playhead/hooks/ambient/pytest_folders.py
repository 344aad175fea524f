"""Record the numbers of pytest's temporary folders (`/tmp/pytest-of-me/pytest-17`); a replay uses the same numbers.

pytest takes the number after the highest one that it finds, so the number depends on earlier runs. Knows
`_pytest.pathlib.make_numbered_dir`. Folders that the recorded run left behind are moved aside, as for `tempfile`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.hooks.ambient.tempfile_names import make_room
from playhead.hooks.guest import Patches, need
from playhead.hooks.state import written_files
from playhead.recording import ambient


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is _pytest.pathlib."""
    need(module, "make_numbered_dir", "_force_symlink")

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def make_numbered_dir(root: Any, prefix: str, mode: int = 0o700) -> Any:
            made: Any = None

            def live() -> str:
                nonlocal made
                # The files in it, and the link beside it that pytest makes to the newest folder.
                written_files.new_folders.add(f"{root}{os.sep}{prefix}")
                # Folders of earlier runs, which pytest renames before it deletes them.
                written_files.new_folders.add(f"{root}{os.sep}garbage-")
                made = original(root, prefix, mode)
                return str(made.name)

            name: Any = ambient.read("folder", live)
            if made is not None:
                return made
            if not isinstance(name, str) or not name.removeprefix(prefix).isdigit():
                return original(root, prefix, mode)
            path = root.joinpath(name)
            make_room(str(path))
            path.mkdir(mode=mode)
            module._force_symlink(root, f"{prefix}current", path)
            return path

        return make_numbered_dir

    patches.replace(module, "make_numbered_dir", wrap)
