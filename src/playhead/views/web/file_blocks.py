"""The files of a run as blocks of a single-file page: the changes, and the texts of their versions. Reads blobs.

A page must stay small enough for a chat or an issue: texts beyond a limit are left out, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from playhead.exporters.files_json import FileLimits, files_json
from playhead.story import Story
from playhead.story.files.file_steps import file_steps, read_version
from playhead.views.web.page_blocks import Packer
from playhead.workspace.history import FileHistory
from playhead.workspace.tree_listing import FileEntry

_MOST_CHANGES = 5_000
_MOST_PER_STEP = 1_000
_MOST_COUNTED = 64 * 1024 * 1024
# Characters of JSON: of all texts, and of the texts that the page unpacks together.
MOST_TEXT = 8_000_000
_LARGEST_GROUP = 2_000_000


def file_blocks(
    story: Story, history: FileHistory, *, most_text: int = MOST_TEXT
) -> dict[str, Any]:
    """Return the block `files` and the blocks `file-texts-N`; none if the run changed no files.

    `files` is the form of `files_json`, with the number of the group that holds each version (`held`) and the
    number of versions that are not in the page (`versions_left_out`).
    """
    limits = FileLimits(
        per_step=_MOST_PER_STEP, changes=_MOST_CHANGES, counts=_MOST_CHANGES, bytes=_MOST_COUNTED
    )
    steps = file_steps(story, history)
    form = files_json(story, history, steps, everything=False, limits=limits)
    if not form["steps"]:
        return {}
    groups, held, left_out = _texts(history, form, most_text)
    form |= {"held": held, "versions_left_out": left_out}
    return {"files": form} | {f"file-texts-{at}": group for at, group in enumerate(groups)}


def _texts(
    history: FileHistory, form: dict[str, Any], most_text: int
) -> tuple[list[dict[str, Any]], dict[str, int], int]:
    """Pack the texts, in the order of paths: the versions of a file are stored as differences to each other."""
    listed = {
        one["id"]
        for step in form["steps"]
        for change in step["changes"]
        for one in (change["before"], change["after"])
        if one is not None
    }
    packer, items, used = Packer(), {}, 0
    left_out: set[str] = set()
    groups: list[dict[str, Any]] = []
    held: dict[str, int] = {}
    for name, workspace, entry in _by_path(history):
        if name not in listed or name in held or not entry.is_stored:
            continue
        if used + packer.size > most_text:
            left_out.add(name)
            continue
        held[name] = len(groups)
        items[name] = packer.pack(asdict(read_version(history, entry, workspace)))
        if packer.size > _LARGEST_GROUP:
            groups.append({"texts": packer.texts, "items": items})
            used += packer.size
            packer, items = Packer(), {}
    return [*groups, {"texts": packer.texts, "items": items}], held, len(left_out)


def _by_path(history: FileHistory) -> Iterator[tuple[str, int, FileEntry]]:
    changes = [
        (effect.workspace, change) for effect in history.effects for change in effect.changes
    ]
    for workspace, change in sorted(changes, key=lambda one: (one[0], one[1].path)):
        for entry in (change.before, change.after):
            if entry is not None and not entry.is_folder:
                yield entry.id, workspace, entry
