"""The original content of files outside the workspaces that the recorded program opened for writing.

Knows snapshot events of the tape; does not know mounts. `hooks.state` records them: files by `open`, databases by
`sqlite3.connect`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from playhead import events
from playhead.encoding.values import thaw
from playhead.tape.reader import Tape
from playhead.workspace.history import FileHistory, WorkspaceStart

# SQLite keeps the last transactions beside the main file.
_SUFFIXES = ("", "-wal", "-journal", "-shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideFile:
    """A file before the program opened it. `contents` are keyed by suffix; if it is empty, the file did not exist."""

    path: str
    contents: dict[str, bytes]


def outside_files(tape: Tape, history: FileHistory) -> list[OutsideFile]:
    """Return the first snapshot of each file that is in no workspace of the tape."""
    found: dict[str, OutsideFile] = {}
    for event in tape.events():
        if event.kind != events.SNAPSHOT or not event.ours:
            continue
        data = tape.whole(event).data
        if not isinstance(data, dict) or data.get("when") != "start":
            continue
        path, value = data.get("path"), thaw(data.get("value"))
        if not isinstance(path, str) or not isinstance(value, dict) or path in found:
            continue
        if not path.startswith("/") or any(_covers(one, path) for one in history.starts):
            continue
        contents = {
            "" if suffix == "main" else suffix: content
            for suffix, content in value.items()
            if isinstance(content, bytes) and suffix in ("main", *_SUFFIXES)
        }
        found[path] = OutsideFile(path=path, contents=contents)
    return list(found.values())


def restore_outside_file(file: OutsideFile, folder: str) -> None:
    """Restore a file. `folder` is the path under which this process reaches the file's folder."""
    name = os.path.basename(file.path)
    for suffix in _SUFFIXES:
        full = os.path.join(folder, name + suffix)
        content = file.contents.get(suffix)
        if content is None:
            with suppress(FileNotFoundError, IsADirectoryError):
                os.unlink(full)
            continue
        # Write into the existing file: its mode and owner stay.
        with open(full, "wb") as new:
            new.write(content)


def _covers(start: WorkspaceStart, path: str) -> bool:
    if not start.tree or not path.startswith(start.root.rstrip("/") + "/"):
        return False
    inner = os.path.relpath(path, start.root)
    left_out = [str(one.get("path")) for one in start.facts.get("left_out") or ()]
    return not any(inner == one or inner.startswith(one + "/") for one in left_out)
