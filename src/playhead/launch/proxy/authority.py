"""A certificate authority of this machine, for tools that can only be recorded by TLS interception.

Knows `openssl`, files and their modes; does not know HTTP. Created on demand, once per store. Its key has
mode 0600, and a client that trusts its certificate trusts only the Playhead of this machine.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import shutil
import ssl
import subprocess
import tempfile
from pathlib import Path

from playhead.errors import PlayheadError

_NAME = "/CN=Playhead, on this machine"
_DAYS = "825"  # the longest validity that all clients accept


class NoAuthority(PlayheadError):
    """Certificates cannot be made here; the text says why."""


class Authority:
    """Creates a certificate for each requested host."""

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "ca.pem"
        self._key = folder / "ca.key"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (self.certificate.exists() and self._key.exists()):
            self._found(folder)
        self.context_for = functools.lru_cache(maxsize=256)(self._context_for)

    def _found(self, folder: Path) -> None:
        """Create the authority in a temporary folder first: two processes that start at once must not mix their
        files.
        """
        with tempfile.TemporaryDirectory(dir=folder) as room:
            key, certificate = Path(room) / "ca.key", Path(room) / "ca.pem"
            _new_key(key)
            words = ["-key", str(key), "-out", str(certificate), "-days", "3650", "-subj", _NAME]
            limits = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
            _openssl("req", "-x509", "-new", *words, *limits)
            os.replace(key, self._key)
            os.replace(certificate, self.certificate)

    def _context_for(self, host: str) -> ssl.SSLContext:
        """The TLS context of a server with that name."""
        with tempfile.TemporaryDirectory() as room:
            key, asked, made = (Path(room) / name for name in ("key", "asked", "made"))
            names = Path(room) / "names"
            names.write_text(f"subjectAltName={_kind(host)}:{host}\nextendedKeyUsage=serverAuth\n")
            _new_key(key)
            _openssl("req", "-new", "-key", str(key), "-out", str(asked), "-subj", "/CN=playhead")
            signed = ["-CA", str(self.certificate), "-CAkey", str(self._key), "-CAcreateserial"]
            put = ["-in", str(asked), "-out", str(made), "-days", _DAYS, "-extfile", str(names)]
            _openssl("x509", "-req", *signed, "-CAserial", str(Path(room) / "serial"), *put)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(made, key)
        context.set_alpn_protocols(["http/1.1"])
        return context


def _new_key(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    _openssl(
        "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(path)
    )
    path.chmod(0o600)


def _kind(host: str) -> str:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "DNS"
    return "IP"


def _openssl(*words: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise NoAuthority("Certificates are made with `openssl`, which is not installed here.")
    ended = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if ended.returncode:
        said = ended.stderr.strip().splitlines()
        raise NoAuthority(f"`openssl {words[0]}` failed: {said[-1] if said else ended.returncode}.")
