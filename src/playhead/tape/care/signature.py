"""Sign a sealed tape with an SSH key of the user, and name the signer. Knows `ssh-keygen -Y`; does not know lines.

The signature covers run, command, folder and the SHA-256 of the sealed file, whose lines name every blob by its hash.
So a tape whose checksums were made right again after an edit no longer fits its signature.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playhead.errors import StoreError, TapeDamaged, UsageError
from playhead.host.private_files import file_of, read_regular, replace_file
from playhead.tape.layout import SEALED_FILE
from playhead.tape.manifest import read_manifest

FILE = "signature.sig"
_NAMESPACE = "playhead"
_LARGEST = 64 * 1024
_BLOCK = 1024 * 1024
_PATIENCE_S = 60
_KEY = re.compile(r"key (SHA256:[A-Za-z0-9+/=]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The result of a check. `good`: the signature fits the tape. `signer` is the name that the user's own list gives
    to the key; None: unknown.
    """

    good: bool
    key: str = ""
    signer: str | None = None
    why: str = ""


def sign(run: Path, key: Path) -> Path:
    """Sign a sealed run with this private key. UsageError: it is not sealed, or the key cannot be used."""
    if not (run / SEALED_FILE).is_file():
        raise UsageError(f"{run.name} is not sealed, and only sealed tapes can be signed.")
    done = _ssh_keygen(["-Y", "sign", "-q", "-f", str(key), "-n", _NAMESPACE], _statement(run))
    if done.returncode or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE"):
        why = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(
            f"{key} cannot sign: {why[-1] if why else 'ssh-keygen printed no reason'}."
        )
    replace_file(run / FILE, done.stdout)
    return run / FILE


def signature_of(run: Path, signers: Path | None = None) -> Signature | None:
    """Check the signature of a run; None: it has none. `signers` is a list of names and keys (see `ssh-keygen`)."""
    if not os.path.lexists(run / FILE):
        return None
    try:
        raw, said = read_regular(run / FILE, _LARGEST), _statement(run)
    except (OSError, TapeDamaged) as error:
        return Signature(good=False, why=f"it cannot be read ({error})")
    with tempfile.TemporaryDirectory(prefix="playhead-") as folder:
        copy = Path(folder, FILE)
        replace_file(copy, raw)
        common = ["-n", _NAMESPACE, "-s", str(copy)]
        done = _ssh_keygen(["-Y", "check-novalidate", *common], said)
        found = _KEY.search(done.stdout.decode("utf-8", "replace"))
        if done.returncode or found is None:
            return Signature(good=False, why="it does not fit this tape")
        return Signature(good=True, key=found[1], signer=_named(copy, signers or _signers()))


def _named(signature: Path, signers: Path) -> str | None:
    """Return the name of the key in the user's list of signers."""
    if not signers.is_file():
        return None
    words = ["-Y", "find-principals", "-s", str(signature), "-f", str(signers)]
    done = _ssh_keygen(words, b"")
    names = done.stdout.decode("utf-8", "replace").split()
    return names[0] if done.returncode == 0 and names else None


def _signers() -> Path:
    return Path.home() / ".ssh" / "allowed_signers"


def _statement(run: Path) -> bytes:
    manifest = read_manifest(run)
    digest = hashlib.sha256()
    with file_of(run / SEALED_FILE) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    facts = [1, manifest.run, manifest.command, manifest.cwd, digest.hexdigest()]
    return f"playhead {json.dumps(facts)}\n".encode()


def _ssh_keygen(words: list[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["ssh-keygen", *words],
            input=given,
            capture_output=True,
            check=False,
            timeout=_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreError(f"Signatures need ssh-keygen, which cannot be run: {error}.") from error
