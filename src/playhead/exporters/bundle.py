"""A run with its files in one archive, `NAME.playhead.zip`: the tape, and the contents that it names.

An opened bundle is a store of its own with one run, so every command works on it as on any store.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

from playhead import clock
from playhead.errors import TapeDamaged
from playhead.tape.reader import Tape
from playhead.workspace.blob_collection import contents_of, copy_records
from playhead.workspace.history import read_history

# The tape of a stranger must not fill the disk.
_LARGEST = 20 * 1024**3


def write_bundle(run: Path, target: Path) -> int:
    """Write the run in that folder as a bundle. Return the number of its file contents."""
    home = run.parent.parent
    needed = contents_of(read_history(Tape(run), home))
    target.parent.mkdir(parents=True, exist_ok=True)
    stem = f"{target.name}.{clock.urandom(6).hex()}"
    part, pack = target.with_name(f"{stem}.part"), target.with_name(f"{stem}.pack.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(run.rglob("*")):
                # A link in a run of another user may lead to any file of the user.
                if path.is_file() and not path.is_symlink():
                    archive.write(path, f"runs/{run.name}/{path.relative_to(run)}")
            copy_records(home, needed, pack)
            # Already compressed.
            archive.write(pack, f"blobs/packs/{run.name}.pack", zipfile.ZIP_STORED)
            for name in sorted(needed):
                loose = home / "blobs" / name[:2] / name
                if loose.is_file() and not loose.is_symlink():
                    archive.write(loose, f"blobs/{name[:2]}/{name}")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
        pack.unlink(missing_ok=True)
    return len(needed)


def open_bundle(source: Path, folder: Path) -> Path:
    """Unpack a bundle into a new store. Return the folder of its run. TapeDamaged: it is not a bundle."""
    try:
        with zipfile.ZipFile(source) as archive:
            found = list(_checked(archive, source))
            for one in found:
                target = folder / one.filename
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with archive.open(one) as read, target.open("wb") as write:
                    shutil.copyfileobj(read, write, 1 << 20)
                target.chmod(0o600)
    except (OSError, zipfile.BadZipFile) as error:
        raise TapeDamaged(f"{source} cannot be read as a bundle: {error}") from None
    runs = list((folder / "runs").glob("*"))
    if len(runs) != 1:
        raise TapeDamaged(f"{source} has {len(runs)} runs; expected one.")
    return runs[0]


def _checked(archive: zipfile.ZipFile, source: Path) -> Iterator[zipfile.ZipInfo]:
    if sum(one.file_size for one in archive.infolist()) > _LARGEST:
        raise TapeDamaged(f"{source} unpacks to more than {_LARGEST // 1024**3} GiB.")
    for one in archive.infolist():
        names = one.filename.split("/")
        if names[0] not in ("runs", "blobs") or any(n in ("", ".", "..") for n in names):
            raise TapeDamaged(f"{source} has a file named {one.filename[:80]!r}: not a bundle.")
        yield one
