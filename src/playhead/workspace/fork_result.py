"""The files that a fork leaves behind, as changes to the real workspace.

Knows three trees: the recorded files at the step of the fork, the files in the fork's folder, and the
real files. A real file that a person edited since the recording is never overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from playhead.workspace.blobs.stable_read import read_file
from playhead.workspace.chosen_files import LARGEST_FILE
from playhead.workspace.folder_compare import compare_folder, entry_now, is_now
from playhead.workspace.history import FileHistory
from playhead.workspace.tree_listing import Change, FileEntry, Tree, between


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedFiles:
    """The changes that `fork --apply` makes to the real folder `root`."""

    root: str
    # The number of paths that the fork itself changed, without files of the repository.
    changed: int
    changes: tuple[Change, ...]
    # Changed by the fork, and by a person since the recording. They are left as they are.
    conflicts: tuple[bytes, ...]
    # Whether the repository's own files are left as they are, because git was used since the recording.
    keeps_git: bool
    history: FileHistory
    number: int
    contents: Mapping[str, bytes] = field(repr=False)

    def read(self, entry: FileEntry) -> bytes:
        """The content of an entry of `changes`."""
        found = self.contents.get(entry.id)
        return self.history.content(entry, self.number) if found is None else found


def forked_files(
    history: FileHistory,
    base: Tree,
    folder: str,
    root: str,
    *,
    number: int = 0,
    excluded: tuple[bytes, ...] = (),
    code: Collection[bytes] = (),
) -> ForkedFiles:
    """Compare the fork's `folder` with the recorded tree `base` that it started from, and with `root`.

    `code` are source files that the fork took from `root` as they are.
    """
    here, real = os.fsencode(folder), os.fsencode(root)
    made: dict[bytes, FileEntry | None] = {}
    for one in compare_folder(base, folder, excluded):
        if one.path not in code or not is_now(real, one.path, one.after):
            made[one.path] = one.after
    start, end = history.start(number), history.at(None, number)
    changes: list[Change] = []
    edited: list[bytes] = []
    for path in sorted({*made, *(one.path for one in between(base, end))}):
        target = made[path] if path in made else base.get(path)
        recorded = (base.get(path), end.get(path), start.get(path))
        if is_now(real, path, target):
            continue
        if path in code or any(is_now(real, path, one) for one in recorded):
            changes.append(Change(path, entry_now(real, path, end.get(path)), target))
        else:
            edited.append(path)
    keeps_git = any(map(_is_git, edited))
    if keeps_git:
        # Objects, refs and the index belong together: a mixture of two repositories is broken.
        changes = [one for one in changes if not _is_git(one.path)]
    return ForkedFiles(
        root=root,
        changed=sum(not _is_git(path) for path in made),
        changes=tuple(changes),
        conflicts=tuple(one for one in edited if one in made and not _is_git(one)),
        keeps_git=keeps_git,
        history=history,
        number=number,
        contents={
            **_contents(real, {one.path: one.before for one in changes}),
            **_contents(here, {one.path: one.after for one in changes if one.path in made}),
        },
    )


def _contents(root: bytes, entries: Mapping[bytes, FileEntry | None]) -> dict[str, bytes]:
    """Read the bytes of files now: the fork's folder is deleted afterwards."""
    found: dict[str, bytes] = {}
    for path, entry in entries.items():
        if entry is None or not entry.is_file or entry.size > LARGEST_FILE:
            continue
        with suppress(OSError):
            found[entry.id] = read_file(os.path.join(root, path)).data
    return found


def _is_git(path: bytes) -> bool:
    return path == b".git" or path.startswith(b".git/")
