"""Tell whether this user recorded a tape. Knows the user's store, marks and digests; not what a replay does.

A tape names a command that a replay runs, so a tape from another person needs the user's consent. A run is
the user's own if it lies in the user's store, or if its manifest has a mark that only this user can make.
See docs/design/022-trust.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.host.cache_folder import writable_or_private
from playhead.host.later import Later
from playhead.host.private_files import file_of, replace_file
from playhead.tape.manifest import Manifest, read_manifest, write_manifest
from playhead.tape.store import default_home, private_key

if TYPE_CHECKING:
    import hashlib
    import hmac
    import json
else:
    hashlib = Later("hashlib")
    hmac = Later("hmac")
    json = Later("json")

# The member of `extra` that holds the mark, and members that say that a run came from elsewhere.
ORIGIN = "origin"
_FROM_ELSEWHERE = ("imported", "imported_from", "pulled", "pulled_from")
_KEY = "origin.key"
_TRUSTED = "trusted"
_BLOCK = 1024 * 1024


def marked_as_own(
    run: Path, manifest: Manifest, environ: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return `manifest.extra` with the mark of this user; unchanged for a run in the user's own store.

    Recording fails open: without a key there is no mark, and a replay will ask.
    """
    if _is_in_own_store(run, environ):
        return manifest.extra
    try:
        return {**manifest.extra, ORIGIN: _mark(run, manifest, environ)}
    except OSError:
        return manifest.extra


def mark_as_own(run: Path) -> None:
    """Mark a folder that a single-file tape of this user was unpacked into."""
    manifest = read_manifest(run)
    write_manifest(run, replace(manifest, extra=marked_as_own(run, manifest)))


def is_own(run: Path, manifest: Manifest, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this user recorded the run in that folder."""
    if any(manifest.extra.get(name) for name in _FROM_ELSEWHERE):
        return False
    if _is_in_own_store(run, environ):
        return True
    mark = manifest.extra.get(ORIGIN)
    if not isinstance(mark, str) or not os.path.exists(_key_folder(environ) / _KEY):
        return False
    try:
        return hmac.compare_digest(mark.encode(), _mark(run, manifest, environ).encode())
    except OSError:
        return False


def _is_in_own_store(run: Path, environ: Mapping[str, str]) -> bool:
    """Compare real paths: a link in the user's store may lead to a tape of another person."""
    return os.path.realpath(run.parent) == os.path.realpath(default_home(environ) / "runs") and (
        not os.path.islink(run)
    )


def _key_folder(environ: Mapping[str, str]) -> Path:
    """Return the user's store; for a user without a home, who keeps runs elsewhere, a private folder."""
    return Path(writable_or_private(str(default_home(environ)), environ))


def _mark(run: Path, manifest: Manifest, environ: Mapping[str, str]) -> str:
    """Return the mark of a run. Path and inode are part of it: a copy that another person changed is not this user's
    run.
    """
    home = _key_folder(environ)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.stat(run)
    place = [os.path.realpath(run), found.st_dev, found.st_ino]
    facts = [manifest.run, manifest.command, manifest.cwd, *place]
    raw = json.dumps(facts, ensure_ascii=True).encode()
    return hmac.new(private_key(home, _KEY), raw, hashlib.sha256).hexdigest()


def digest_of(run: Path, manifest: Manifest) -> str:
    """Return the hash that the user's consent refers to: of the command, its folder, and every byte of the segments.

    Large values and files are covered too, because segments name them by their hash.
    """
    digest = hashlib.sha256(json.dumps([manifest.command, manifest.cwd]).encode())
    for path in sorted(one for one in run.iterdir() if one.name.startswith("tape")):
        with file_of(path) as file:
            digest.update(f"\0{path.name}\0{os.fstat(file.fileno()).st_size}\0".encode())
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()


def remember_own_file(source: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Remember that this user has just recorded that single-file tape. An edited copy of it is not the user's own.

    Recording fails open: if the store cannot be written, a replay will ask.
    """
    with suppress(OSError):
        trust(_digest_of_file(source), environ)


def is_own_file(source: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this user recorded a single-file tape, and it has not changed since."""
    try:
        return is_trusted(_digest_of_file(source), environ)
    except OSError:
        return False


def _digest_of_file(source: Path) -> str:
    digest = hashlib.sha256(b"single file\0")
    with file_of(source) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def is_trusted(digest: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the user has agreed to run the command of this tape before."""
    return os.path.exists(default_home(environ) / _TRUSTED / digest)


def trust(digest: str, environ: Mapping[str, str] = os.environ) -> None:
    """Remember that the user agreed. OSError: the user's store cannot be written."""
    folder = default_home(environ) / _TRUSTED
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(folder / digest, b"")
