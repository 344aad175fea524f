"""Which paths of a folder belong to the workspace, and a walk over them. Knows names, ignore rules and
limits; reads no content.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from playhead.workspace import limits
from playhead.workspace.git.git_ignore import IgnoreRules
from playhead.workspace.git.git_objects import tracked_files
from playhead.workspace.limits import LeftOut

_ATTEMPTED_INDEX = 64 * 1024 * 1024


class ChosenFiles:
    """Answers for one workspace. `excluded` are folders that are never part of it: the store."""

    def __init__(self, root: bytes, excluded: tuple[bytes, ...] = ()) -> None:
        self.root = root
        self.tracked = _tracked(root)
        self.ignore = IgnoreRules(root, git=os.path.isdir(os.path.join(root, b".git")))
        self._folders = _parents(self.tracked)
        self._excluded = frozenset(
            os.path.relpath(one, root) for one in excluded if one.startswith(root + b"/")
        )

    def why_not_folder(self, path: bytes) -> str | None:
        """Why a folder is left out with all that is in it; None: it is part of the workspace."""
        if path in self._excluded:
            return "store"
        if path in self._folders or path == b".git" or path.startswith(b".git/"):
            return None
        if limits.is_derived(path.rpartition(b"/")[2]):
            return "derived"
        if self.ignore.ignores(path, is_folder=True):
            return "ignored"
        if os.path.exists(os.path.join(self.root, path, b"pyvenv.cfg")):
            return "derived"
        return None

    def why_not_file(self, path: bytes, size: int) -> str | None:
        """Small files that git ignores are kept: databases and logs decide what an agent does."""
        if size <= limits.LARGEST_IGNORED or path in self.tracked or path.startswith(b".git/"):
            return None
        return "ignored" if self.ignore.ignores(path, is_folder=False) else None

    def has(self, path: bytes) -> bool:
        """Whether all folders above a path are part of the workspace."""
        names = path.split(b"/")
        above = (b"/".join(names[:count]) for count in range(1, len(names)))
        return all(self.why_not_folder(one) is None for one in above)

    def walk(
        self,
        top: bytes = b"",
        *,
        entering: Callable[[bytes], object] | None = None,
        left_out: Callable[[LeftOut], object] | None = None,
    ) -> Iterator[tuple[bytes, os.stat_result]]:
        """Every path below `top` with its status, folders before what is in them.

        `entering` is called for each folder before it is listed: a watch added then misses nothing.
        """
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            if entering is not None:
                entering(folder)
            prefix = folder + b"/" if folder else b""
            try:
                entries = os.scandir(os.path.join(self.root, folder))
            except OSError as error:
                if left_out is not None and not isinstance(error, FileNotFoundError):
                    left_out(LeftOut(folder, f"unreadable: {error.strerror}"))
                continue
            with entries:
                for one in entries:
                    path = prefix + one.name
                    try:
                        status = one.stat(follow_symlinks=False)
                    except OSError:
                        continue  # deleted since it was listed
                    why = None
                    if one.is_dir(follow_symlinks=False):
                        why = self.why_not_folder(path)
                        if why is None:
                            waiting.append(path)
                    elif status.st_size > limits.LARGEST_IGNORED:
                        why = self.why_not_file(path, status.st_size)
                    if why is None:
                        yield path, status
                    elif left_out is not None and why != "store":
                        left_out(LeftOut(path, why))


def _tracked(root: bytes) -> dict[bytes, bytes]:
    try:
        with open(os.path.join(root, b".git", b"index"), "rb") as file:
            return tracked_files(file.read(_ATTEMPTED_INDEX))
    except OSError:
        return {}


def _parents(paths: dict[bytes, bytes]) -> frozenset[bytes]:
    """All folders that hold one of these files."""
    found: set[bytes] = set()
    for path in paths:
        folder = path.rpartition(b"/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition(b"/")[0]
    return frozenset(found)
