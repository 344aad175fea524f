"""Share secrets that one process of a run learns late with the other processes of the run. Knows one file; does not
know tapes.

A program sets `API_KEY` after its start (`load_dotenv()`, a rotated key) and prints it. Another process records the
program's output, so the value must reach that process before the output does. The file is in the run's folder while the
run lasts. Each value in it is encrypted with the store's redaction key, so a copy of the folder alone, or the folder of
a killed run, reveals nothing.
"""

from __future__ import annotations

import os

from playhead import clock
from playhead.host.later import Later
from playhead.redact.names import is_secret_variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    import hmac
    from collections.abc import Mapping
else:
    hashlib = Later("hashlib")
    hmac = Later("hmac")

_NAME = "late.secrets"
_SHARE = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_HEAR = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NONCE = 12
_LARGEST = 1024 * 1024


class LateSecrets:
    """The file of one run, as one process sees it. If it cannot be written, values stay in their process."""

    __slots__ = ("_key", "_known", "_path", "_read")

    def __init__(self, folder: str, key: bytes) -> None:
        self._path = os.path.join(folder, _NAME)
        self._key = key
        self._known: set[str] = set()
        self._read = 0

    def share(self, variables: Mapping[str, str]) -> None:
        """Tell the other processes of the run about the secrets among these variables."""
        fresh = {
            value
            for name, value in variables.items()
            if value not in self._known and is_secret_variable(name)
        }
        if not fresh:
            return
        self._known |= fresh
        lines = "".join(f"{crypt(self._key, os.fsencode(value)).hex()}\n" for value in fresh)
        try:
            fd = os.open(self._path, _SHARE, 0o600)
        except OSError:
            return
        try:
            os.write(fd, lines.encode())
        except OSError:
            return
        finally:
            os.close(fd)

    def hear(self) -> list[str]:
        """Return the values that were shared since the last call."""
        try:
            if os.stat(self._path, follow_symlinks=False).st_size <= self._read:
                return []
            fd = os.open(self._path, _HEAR)
        except OSError:
            return []
        try:
            raw = os.pread(fd, _LARGEST, self._read)
        except OSError:
            return []
        finally:
            os.close(fd)
        whole = raw[: raw.rfind(b"\n") + 1]
        self._read += len(whole)
        values = {os.fsdecode(decrypted(self._key, line)) for line in whole.split()} - {""}
        fresh = values - self._known
        self._known |= fresh
        return sorted(fresh)

    def forget(self) -> None:
        """Delete the file at the end of the run."""
        try:
            os.unlink(self._path)
        except OSError:
            return


def crypt(key: bytes, raw: bytes) -> bytes:
    """Return `raw` encrypted with the store's redaction key."""
    nonce = clock.urandom(_NONCE)
    return nonce + _xor(key, raw, nonce)


def decrypted(key: bytes, line: bytes) -> bytes:
    """Decrypt hexadecimal digits: the inverse of `crypt`. Invalid input gives an empty result."""
    try:
        sealed = bytes.fromhex(line.decode())
    except ValueError:
        return b""
    return _xor(key, sealed[_NONCE:], sealed[:_NONCE])


def _xor(key: bytes, raw: bytes, nonce: bytes) -> bytes:
    """Encrypt in counter mode over HMAC-SHA-256: the standard library of a guest has no cipher."""
    stream = b""
    while len(stream) < len(raw):
        counter = len(stream).to_bytes(8, "big")
        stream += hmac.new(key, b"late" + nonce + counter, hashlib.sha256).digest()
    return bytes(one ^ other for one, other in zip(raw, stream, strict=False))
