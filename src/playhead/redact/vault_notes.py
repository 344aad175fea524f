"""Pass the secrets of one run, by placeholder, between its processes and the vault. Knows one file; does not know
tapes.

The processes of a recording with `--vault` write the secrets that they redact into this file, and the launcher moves
them into the vault at the end. In a replay it is the other way round. The file is in the store but not in the run's
folder, so no export contains it, and its lines are encrypted with the store's redaction key, because the standard
library of a guest has no cipher (see `late_secrets`).
"""

from __future__ import annotations

import os
from binascii import a2b_base64, b2a_base64

from playhead.encoding.jsonbytes import dumps, loads
from playhead.redact.late_secrets import crypt, decrypted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

FOLDER = "vault"
_LARGEST = 64 * 1024 * 1024
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BASE64 = frozenset({"$bytes", "$bytearray", "b64"})


class KeptSecret:
    """A secret: the placeholder that stands for it on the tape, its kind, and its bytes."""

    __slots__ = ("kind", "placeholder", "secret")

    def __init__(self, placeholder: str, kind: str, secret: bytes) -> None:
        self.placeholder = placeholder
        self.kind = kind
        self.secret = secret


def path_beside(run: str, suffix: str) -> str:
    """Return the path of a vault file for the run in this folder."""
    runs, name = os.path.split(run.rstrip(os.sep))
    return os.path.join(os.path.dirname(runs), FOLDER, f"{name}{suffix}")


class VaultNotes:
    """The file of one run, as one process sees it. If it cannot be written, the vault lacks these secrets."""

    __slots__ = ("_key", "_known", "path")

    def __init__(self, run: str, key: bytes) -> None:
        self.path = path_beside(run, ".notes")
        self._key = key
        self._known: set[str] = set()

    def keep(self, placeholder: str, kind: str, secret: bytes) -> None:
        if placeholder in self._known:
            return
        self._known.add(placeholder)
        self.write([KeptSecret(placeholder, kind, secret)])

    def write(self, kept: Iterable[KeptSecret]) -> None:
        lines = [
            dumps([one.placeholder, one.kind, b2a_base64(one.secret, newline=False).decode()])
            for one in kept
        ]
        raw = "".join(f"{crypt(self._key, line.encode()).hex()}\n" for line in lines)
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            fd = os.open(self.path, _WRITE, 0o600)
        except OSError:
            return
        try:
            os.write(fd, raw.encode())
        except OSError:
            return
        finally:
            os.close(fd)

    def read(self) -> list[KeptSecret]:
        """Return the secrets; none if there is no file."""
        try:
            fd = os.open(self.path, _READ)
        except OSError:
            return []
        try:
            raw = os.pread(fd, _LARGEST, 0)
        except OSError:
            return []
        finally:
            os.close(fd)
        found = []
        for line in raw[: raw.rfind(b"\n") + 1].split():
            try:
                placeholder, kind, secret = loads(decrypted(self._key, line).decode())
                found.append(KeptSecret(placeholder, kind, a2b_base64(secret)))
            except (ValueError, TypeError):
                continue  # a line of another key, or a torn one
        return found

    def forget(self) -> None:
        try:
            os.unlink(self.path)
        except OSError:
            return


def forget_vault(run: str) -> None:
    """Delete the secrets of a run that is deleted."""
    for suffix in (".vault", ".notes"):
        try:
            os.unlink(path_beside(run, suffix))
        except OSError:
            continue


def filled_bytes(raw: bytes, secrets: Mapping[bytes, bytes]) -> bytes:
    """Return `raw` with the secrets in place of their placeholders."""
    if b"redacted" not in raw and b"0edac7ed" not in raw:
        return raw
    for placeholder, secret in secrets.items():
        raw = raw.replace(placeholder, secret)
    return raw


def filled(value: Any, secrets: Mapping[bytes, bytes]) -> Any:
    """Do the same as `filled_bytes` for plain JSON."""
    if type(value) is str:
        raw = value.encode("utf-8", "surrogatepass")
        done = filled_bytes(raw, secrets)
        return value if done is raw else done.decode("utf-8", "surrogateescape")
    if type(value) is list:
        return [filled(item, secrets) for item in value]
    if type(value) is dict:
        return {name: _member(name, item, secrets) for name, item in value.items()}
    return value


def _member(name: str, item: Any, secrets: Mapping[bytes, bytes]) -> Any:
    if name not in _BASE64 or type(item) is not str:
        return filled(item, secrets)
    try:
        raw = a2b_base64(item)
    except ValueError:
        return filled(item, secrets)
    done = filled_bytes(raw, secrets)
    return item if done == raw else b2a_base64(done, newline=False).decode()


def by_placeholder(kept: Iterable[KeptSecret]) -> dict[bytes, bytes]:
    """Return the secrets by placeholder, for `filled`. Longest first: a placeholder may be the beginning of another."""
    found = {one.placeholder.encode(): one.secret for one in kept}
    return dict(sorted(found.items(), key=lambda one: len(one[0]), reverse=True))
