"""Copy a folder of files into an object store and back. Knows folders and objects; not runs.

For the Parquet files of an export. The marker goes last: without it, a reader takes the folder for unfinished.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from playhead.errors import RemoteError, UsageError
from playhead.remote.objects import ObjectFolder


def upload(folder: Path, remote: ObjectFolder, marker: str) -> None:
    """Upload all files, then the marker; then delete older files. UsageError: the place has other files."""
    before = {one.path for one in remote.list("")}
    if before and marker not in before:
        raise UsageError(f"{remote.url} has other files. Name a new prefix, or an earlier export.")
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    for name, path in sorted(names.items(), key=lambda one: one[0] == marker):
        with path.open("rb") as file:
            remote.put_file(name, file)
    remote.delete(sorted(before - names.keys()))


def download(remote: ObjectFolder, folder: Path, marker: str) -> None:
    """Fetch all files into an empty folder. UsageError: there is no marker."""
    names = [one.path for one in remote.list("")]
    if marker not in names:
        raise UsageError(
            f"{remote.url} has no tables of Playhead. `playhead export --parquet {remote.url}` writes them."
        )
    for name in names:
        # Another person wrote these names: they must not lead out of the folder.
        parts = PurePosixPath(name).parts
        if not parts or ".." in parts or name.startswith("/"):
            raise RemoteError(f"{remote.url} has a file with the name {name!r}.")
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for block in remote.stream(name):
                file.write(block)
