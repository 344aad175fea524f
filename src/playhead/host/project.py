"""The project of a run: the git root, else the folder. Knows .git folders; starts no process.

Starting git for this would cost 5 ms per run and fail where git is not installed.
"""

from __future__ import annotations

import re
from pathlib import Path

_HASH = re.compile(r"[0-9a-f]{40,64}")


def project_of(cwd: Path) -> Path:
    for folder in (cwd, *cwd.parents):
        if is_there(folder / ".git"):
            return folder
    return cwd


def repository_of(project: Path) -> Path | None:
    """Return the folder of the repository if it is outside the project, as for a worktree or a submodule; else None."""
    try:
        folder = _git_folder(project)
        common = folder / "commondir"
        if common.is_file():
            folder = (folder / common.read_text().strip()).resolve()
        if folder.is_dir() and not folder.is_relative_to(project):
            return folder
    except (OSError, ValueError):  # not there; not text
        pass
    return None


def is_there(path: Path) -> bool:
    """Return whether the path exists, as far as we may know: a folder that we must not read counts as missing."""
    try:
        return path.exists()
    except OSError:
        return False


def commit_of(project: Path) -> str | None:
    """Return the commit that is checked out; None: there is none, or it cannot be determined."""
    try:
        folder = _git_folder(project)
        head = (folder / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head if _HASH.fullmatch(head) else None
        commit = _resolve(folder, head[len("ref: ") :]) or ""
        return commit if _HASH.fullmatch(commit) else None
    except (OSError, ValueError):  # not there; not text
        return None


def _git_folder(project: Path) -> Path:
    """Return the git folder: `.git` is a folder, or (in worktrees and submodules) a file that names the folder."""
    git = project / ".git"
    if git.is_file():
        target = git.read_text().partition("gitdir:")[2].strip()
        return (project / target).resolve()
    return git


def _resolve(folder: Path, ref: str) -> str | None:
    common = folder
    if (folder / "commondir").is_file():
        common = (folder / (folder / "commondir").read_text().strip()).resolve()
    for place in (folder, common):
        if (place / ref).is_file():
            return (place / ref).read_text().strip()
    packed = common / "packed-refs"
    if packed.is_file():
        for line in packed.read_text().splitlines():
            commit, _, name = line.partition(" ")
            if name == ref:
                return commit
    return None
