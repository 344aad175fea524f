"""The vault: the secrets of a run, encrypted, for replays on this machine. Knows the key, the cipher and the file.

`cryptography` (the extra `vault`) encrypts with AES-256-GCM, with the run's id as additional data. The key is in a
file of the user's own store that only the user can read, or in the user's keyring. The vault's file is in the store
but not in the run's folder: exports, bundles, pushes and the catalogue read run folders, and so never see it.
"""

from __future__ import annotations

import importlib
import os
from binascii import a2b_base64, b2a_base64
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.encoding.jsonbytes import dumps, loads
from playhead.errors import PlayheadError, UsageError
from playhead.host.private_files import create_part, read_regular
from playhead.redact.vault_notes import KeptSecret, VaultNotes, path_beside
from playhead.tape.store import default_home, private_key, redaction_key

_KEY = "vault.key"
_SERVICE = "playhead"
_NONCE = 12
_LARGEST = 128 * 1024 * 1024


class VaultLocked(PlayheadError):
    """The vault of a run cannot be opened: no library, no key, or another key."""


def check(key: str) -> None:
    """Check that a vault can be made here; raise UsageError if not."""
    try:
        _cipher(_key(key, make=True))
    except VaultLocked as error:
        raise UsageError(f"--vault: {error}") from None


def close_vault(run: Path, key: str) -> int:
    """Move the secrets of a run that has ended into its vault; return the number of secrets in it."""
    notes = VaultNotes(os.fspath(run), redaction_key(run.parent.parent))
    fresh = notes.read()
    if not fresh:
        return 0
    known = {one.placeholder: one for one in [*_stored(run, key), *fresh]}
    rows = [
        [one.placeholder, one.kind, b2a_base64(one.secret, newline=False).decode()]
        for one in known.values()
    ]
    nonce = clock.urandom(_NONCE)
    sealed = _cipher(_key(key, make=True)).encrypt(nonce, dumps(rows).encode(), run.name.encode())
    target = path_beside(os.fspath(run), ".vault")
    fd, part = create_part(target)
    with open(fd, "wb") as file:
        file.write(nonce + sealed)
    os.replace(part, target)
    notes.forget()
    return len(known)


def open_vault(run: Path, key: str) -> list[KeptSecret]:
    """Return the secrets of a run; none if it has no vault. VaultLocked says why it cannot be opened."""
    # A run that was killed has left its secrets behind.
    if os.path.exists(path_beside(os.fspath(run), ".notes")):
        close_vault(run, key)
    return _stored(run, key)


def _stored(run: Path, key: str) -> list[KeptSecret]:
    try:
        raw = read_regular(path_beside(os.fspath(run), ".vault"), _LARGEST)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise VaultLocked(
            f"the vault of {run.name} cannot be read ({error.strerror or error})"
        ) from None
    try:
        plain = _cipher(_key(key, make=False)).decrypt(
            raw[:_NONCE], raw[_NONCE:], run.name.encode()
        )
        rows = loads(plain.decode())
        return [KeptSecret(name, kind, a2b_base64(secret)) for name, kind, secret in rows]
    except VaultLocked:
        raise
    except Exception as error:  # cryptography's InvalidTag, or a file that is not a vault
        raise VaultLocked(f"the vault of {run.name} was made with another key") from error


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise VaultLocked(
            "a vault needs the library `cryptography`: pip install 'playhead[vault]'"
        ) from None
    return AESGCM(key[:32])


def _key(where: str, *, make: bool) -> bytes:
    if where != "keyring":
        home = default_home()
        if not make and not (home / _KEY).exists():
            raise VaultLocked(f"its key {home / _KEY} is missing")
        home.mkdir(parents=True, mode=0o700, exist_ok=True)
        return private_key(home, _KEY)
    try:
        keyring: Any = importlib.import_module("keyring")
    except ImportError:
        raise VaultLocked(
            "the library `keyring` is not installed: pip install 'playhead[vault]'"
        ) from None
    try:
        text = keyring.get_password(_SERVICE, _KEY)
        if text is None and make:
            text = clock.urandom(32).hex()
            keyring.set_password(_SERVICE, _KEY, text)
    except Exception as error:  # noqa: BLE001  each backend has exceptions of its own
        raise VaultLocked(f"the keyring cannot be used ({error})") from None
    if text is None:
        raise VaultLocked("its key is not in the keyring")
    return bytes.fromhex(text)
