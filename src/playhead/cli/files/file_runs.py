"""What the verbs about files share: a run with its files, and paths as people type them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from playhead.cli.common import find_run
from playhead.errors import UsageError
from playhead.story import Story, tell
from playhead.story.file_steps import FileStep, file_steps
from playhead.tape.reader import Tape
from playhead.workspace.history import FileHistory, read_history


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRun:
    """A run whose files are on its tape."""

    path: Path
    story: Story
    history: FileHistory

    @property
    def home(self) -> Path:
        """The store of the run."""
        return self.path.parent.parent

    @property
    def steps(self) -> list[FileStep]:
        return file_steps(self.story, self.history)


def open_file_run(store: Path | None, run: str) -> FileRun:
    """UsageError if the run has no workspace."""
    path = find_run(store, run)
    tape = Tape(path)
    history = read_history(tape, path.parent.parent)
    history.start()
    return FileRun(path=path, story=tell(tape), history=history)


def path_in(history: FileHistory, typed: str) -> tuple[int, bytes]:
    """The workspace and the path in it that a person means: relative to it, to here, or absolute."""
    roots = [one for one in history.starts if one.tree]
    known = [
        (one.number, os.fsencode(os.path.relpath(full, one.root)))
        for one in roots
        for full in (_clean(Path(one.root) / typed), _clean(Path.cwd() / typed))
        if (full + "/").startswith(one.root + "/")
    ]
    for number, path in known:
        changed = (change.path for effect in history.effects for change in effect.changes)
        if path in history.start(number) or path in changed:
            return number, path
    raise UsageError(
        f"The run has no file {typed} in its workspace ({', '.join(one.root for one in roots)}). "
        "`playhead files RUN` lists those that changed."
    )


def _clean(path: Path) -> str:
    """Without `..`, and without following links: a link in the workspace is a file of its own."""
    return os.path.normpath(path)
