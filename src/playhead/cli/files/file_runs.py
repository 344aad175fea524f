"""What the verbs about files share: a run with its files, and paths as people type them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from playhead.cli.run_names import find_tape
from playhead.errors import PlayheadError, UsageError
from playhead.host.project import project_of
from playhead.story import Story, tell
from playhead.story.files.blame_across import RunFiles
from playhead.story.files.file_steps import FileStep, file_steps
from playhead.tape import store as stores
from playhead.tape.reader import Tape
from playhead.workspace.history import FileHistory, read_history
from playhead.workspace.tree_listing import Tree


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
    """Open a run with its files. UsageError: the run has no workspace."""
    path = find_tape(store, run)
    tape = Tape(path)
    history = read_history(tape, path.parent.parent)
    history.start()
    return FileRun(path=path, story=tell(tape), history=history)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangingRun:
    """A run that changed a file, whose path in its workspace is `path`."""

    files: RunFiles
    path: bytes
    is_fork: bool = False

    def left(self) -> bytes | None:
        """Return the file as the run left it. None: the run deleted it."""
        return self._content(self.files.history.at(None, self.files.number))

    def found(self) -> bytes | None:
        """Return the file as the run found it. None: it did not exist."""
        return self._content(self.files.history.start(self.files.number))

    def _content(self, tree: Tree) -> bytes | None:
        entry = tree.get(self.path)
        return None if entry is None else self.files.history.content(entry, self.files.number)


def file_runs_of(home: Path, file: Path, *, everywhere: bool = False) -> list[ChangingRun]:
    """Return the runs of a store that had a file in their workspace, oldest first. Empty: none of them changed it.
    `everywhere`: not only the runs of the file's project.
    """
    from playhead.library.catalogue import Filter, Library

    project = None if everywhere else str(project_of(file.parent))
    found: list[ChangingRun] = []
    for entry in Library(home).entries(Filter(project=project, replays=False)):
        path = stores.find_run(home, entry.id)
        try:
            tape = Tape(path)
            history = read_history(tape, home)
        except PlayheadError:
            continue  # damaged, or from a later version: the other runs still count
        for start in history.starts:
            if start.tree and file.is_relative_to(start.root):
                inner = os.fsencode(os.path.relpath(file, start.root))
                steps = file_steps(tell(tape), history)
                files = RunFiles(run=entry.id, history=history, steps=steps, number=start.number)
                is_fork = "forked_from" in entry.manifest.extra
                found.append(ChangingRun(files=files, path=inner, is_fork=is_fork))
                break
    found.reverse()
    paths = {one.path for one in found}
    # Workspaces may be inside each other; a file then has several paths, and the shortest root counts.
    longest = max(paths, key=len, default=b"")
    found = _without_copies([one for one in found if one.path == longest], file)
    return found if any(one.files.changes(one.path) for one in found) else []


def _without_copies(runs: list[ChangingRun], file: Path) -> list[ChangingRun]:
    """Leave out forks that worked on a copy of the files. If a fork was applied, the next run found the file as the
    fork left it, or the file is still like that, and the run before had left another one.
    """
    kept: list[ChangingRun] = []
    for place, one in reversed(list(enumerate(runs))):
        if one.is_fork:
            earlier = next((other for other in reversed(runs[:place]) if not other.is_fork), None)
            try:
                then = kept[0].found() if kept else file.read_bytes() if file.is_file() else None
                if one.left() != then or (earlier is not None and earlier.left() == then):
                    continue
            except PlayheadError:
                continue  # the tape came without its contents
        kept.insert(0, one)
    return kept


def path_in(history: FileHistory, typed: str) -> tuple[int, bytes]:
    """Return the workspace and the path in it that a user means: relative to it, to the current folder, or absolute."""
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
    """Normalise a path without following links: a link in the workspace is a file itself."""
    return os.path.normpath(path)
