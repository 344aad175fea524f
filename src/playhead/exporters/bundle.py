"""A run with its files in one archive, `NAME.playhead.zip`: the tape, and the contents that it names.

An opened bundle is a store of its own with one run, so every command works on it as on any store.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from playhead import clock
from playhead.errors import TapeDamaged
from playhead.tape.reader import Tape
from playhead.workspace.blob_collection import contents_of, copy_records
from playhead.workspace.blobs.pool import Pool, is_digest
from playhead.workspace.history import read_history

# The bundle of a stranger must not fill the disk. Real ones expand to at most 50 times their size.
_LARGEST = 20 * 1024**3
_MOST_EXPANSION = 200
_ALWAYS_ALLOWED = 64 * 1024**2
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Damaged archives raise many kinds of errors: of zlib, at an early end, for encryption and unknown methods.
_UNREADABLE = (
    *(OSError, zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError),
)


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
            pool = Pool(home)
            for name in sorted(filter(is_digest, needed)):
                loose = Path(pool.loose(name))
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
    except _UNREADABLE as error:
        raise TapeDamaged(f"{source} cannot be read as a bundle: {error}") from None
    runs = list((folder / "runs").glob("*"))
    if len(runs) != 1:
        raise TapeDamaged(f"{source} has {len(runs)} runs; expected one.")
    return runs[0]


def _checked(archive: zipfile.ZipFile, source: Path) -> Iterator[zipfile.ZipInfo]:
    size = sum(one.file_size for one in archive.infolist())
    if size > _LARGEST:
        raise TapeDamaged(f"{source} unpacks to more than {_LARGEST // 1024**3} GiB.")
    # Of the size of the whole file: several members may share the same bytes.
    most = max(_ALWAYS_ALLOWED, source.stat().st_size * _MOST_EXPANSION)
    if size > most:
        raise TapeDamaged(
            f"{source} unpacks to {size:,} bytes, more than {_MOST_EXPANSION} times its size: not a bundle."
        )
    room = shutil.disk_usage(tempfile.gettempdir()).free
    if size > room:
        raise TapeDamaged(f"{source} unpacks to {size:,} bytes, and there is room for {room:,}.")
    for one in archive.infolist():
        names = one.filename.split("/")
        if names[0] not in ("runs", "blobs") or any(n in ("", ".", "..") for n in names):
            raise TapeDamaged(f"{source} has a file named {one.filename[:80]!r}: not a bundle.")
        if one.compress_type not in _METHODS or one.flag_bits & 1:
            raise TapeDamaged(f"{source} is encrypted or compressed by an unknown method.")
        yield one
