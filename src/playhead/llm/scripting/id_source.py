"""Ids, times and opaque tokens in the form of the providers: random, or derived from a seed.

One source serves one answer, so that a seeded answer does not depend on other concurrent answers.
"""

from __future__ import annotations

import base64
import hashlib
from email.utils import formatdate

from playhead import clock

_ALNUM = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BASE58 = _ALNUM.translate(str.maketrans("", "", "0IOl"))
_HEX = "0123456789abcdef"
_KEY = _ALNUM + "-_"
_SEEDED_EPOCH = 1_767_225_600


class IdSource:
    """Generates ids for one answer; `key` distinguishes the answers of one seed."""

    def __init__(self, seed: int | None, key: str) -> None:
        self._root = clock.urandom(32) if seed is None else f"{seed}/{key}/".encode()
        self._minted = 0
        # Used twice in one answer: in a header, and in the body of an error.
        self.request_token = self.base58(20)
        if seed is None:
            self.now = clock.wall_ns() // 1_000_000_000
        else:
            self.now = _SEEDED_EPOCH + int.from_bytes(self._bytes(2), "big")

    def base58(self, length: int) -> str:
        return self._letters(_BASE58, length)

    def alnum(self, length: int) -> str:
        return self._letters(_ALNUM, length)

    def hex(self, length: int) -> str:
        return self._letters(_HEX, length)

    def secret(self, length: int) -> str:
        return self._letters(_KEY, length)

    def opaque(self, length: int) -> str:
        """Base64 of random bytes: signatures and encrypted content."""
        return base64.b64encode(self._bytes(length)).decode()

    def date(self) -> str:
        return formatdate(self.now, usegmt=True)

    def _letters(self, alphabet: str, length: int) -> str:
        return "".join(alphabet[byte % len(alphabet)] for byte in self._bytes(length))

    def _bytes(self, length: int) -> bytes:
        self._minted += 1
        return hashlib.shake_256(self._root + b"%d" % self._minted).digest(length)
