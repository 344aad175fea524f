"""Find texts in base64, and in escapes of JSON and of addresses. Knows encodings; does not know secrets.

Tools and APIs hand files over in base64 (`{"content": "…", "encoding": "base64"}`), and a key in such a file is as
readable as any other. Ids and hashes look alike, so only base64 whose first bytes are text is decoded as a whole.
Images and archives are not: their first bytes are not ASCII.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The first character of base64 that encodes ASCII: the highest bit of six is 0.
FIRST_OF_TEXT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef")
# A shorter text has no room for a secret.
_SHORTEST = 24
_SAMPLE = 24
_OPEN_SAMPLE = 16
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_MEMBERS = bytes(sorted(_ALPHABET))
_STANDARD = bytes.maketrans(b"-_", b"+/")
_BLANKS = frozenset(b"\t\n\r")
_BACKSLASH = ord("\\")
_BACKSPACE = 8
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_PERCENT = ord("%")
# Escapes without which no name and no value are apart in an address: `=`, `:`, `>`, a blank, a quote, `%`.
ADDRESS_ESCAPES = (b"%3D", b"%3d", b"%3A", b"%3a", b"%3E", b"%3e", b"%20", b"%22", b"%25")
# What escapes of ASCII characters in JSON begin with, and the only short one of a character that a password may hold.
JSON_ESCAPES = (b"\\u00", b"\\b")
# A longer text is not an address. Its escapes would take longer to decode than everything else.
_LONGEST_ADDRESS = 64 * 1024
# How far before a run its beginning is searched, also by the native core: in base64 of ASCII, `+` and `/` stand for
# `>`, `?` and `~` alone.
REACH = 96


def encoded_text(raw: bytes, at: int) -> tuple[int, int, bytes] | None:
    """Return start, end and the decoded bytes of the base64 text around `at`, where a run of letters begins.

    None: it is not base64, or not of a text.
    """
    if raw[at - 1 : at] in (b"+", b"/"):
        low = max(0, at - REACH)
        while at > low and raw[at - 1] in _ALPHABET:
            at -= 1
    if raw[at - 1 : at] == b"\\":
        at += 1  # `\n` in JSON: the letter belongs to the escape
    # By length and sample first: every id of every event comes here.
    sample = raw[at : at + _SAMPLE].translate(_STANDARD)
    if len(sample) < _SHORTEST or sample[0] not in FIRST_OF_TEXT:
        return None
    try:
        if not a2b_base64(sample).isascii():
            return None
    except Error:
        return None
    end = _end_of(raw, at)
    if end - at < _SHORTEST:
        return None
    text = raw[at:end].translate(_STANDARD)
    if len(text) % 4 == 1:
        text = text[:-1]  # a letter that does not belong to it
    decoded = a2b_base64(text + b"=" * (-len(text) % 4))
    padding = len(raw[end : end + 2]) - len(raw[end : end + 2].lstrip(b"="))
    return at, end + padding, decoded


def open_text(tail: bytes) -> int | None:
    """Return where base64 of a text begins that reaches the end of `tail`."""
    at = len(tail.rstrip(_MEMBERS))
    if tail[at - 1 : at] == b"\\":
        at += 1
    sample = tail[at : at + _OPEN_SAMPLE].translate(_STANDARD)
    if len(sample) < _OPEN_SAMPLE or not a2b_base64(sample).isascii():
        return None
    return at


def _end_of(raw: bytes, at: int) -> int:
    """Return where the base64 characters from `at` on end."""
    size = 256
    while True:
        piece = raw[at : at + size]
        rest = len(piece.lstrip(_MEMBERS))
        if rest or len(piece) < size:
            return at + len(piece) - rest
        size *= 8


def encoded_like(original: bytes, plain: bytes) -> bytes:
    """Return `plain` in base64 with the alphabet and the padding of the original."""
    made = b2a_base64(plain, newline=False)
    if not original.endswith(b"="):
        made = made.rstrip(b"=")
    if b"-" in original or b"_" in original:
        made = made.translate(_URL_SAFE)
    return made


def from_base64(text: str) -> bytes | None:
    """Return the decoded bytes; None: the text is not base64."""
    try:
        return a2b_base64(text, strict_mode=True)  # type: ignore[call-arg, unused-ignore]
    except ValueError:
        return None
    except TypeError:  # Python 3.10 has no strict mode
        return _from_base64_loosely(text)


def _from_base64_loosely(text: str) -> bytes | None:
    try:
        raw = a2b_base64(text)
    except ValueError:
        return None
    return raw if b2a_base64(raw, newline=False).decode() == text else None


def has_escapes(raw: bytes) -> bool:
    """Return whether `escaped_text` may find something. False is certain."""
    for one in JSON_ESCAPES:
        if one in raw:
            return True
    if b"%" in raw and len(raw) <= _LONGEST_ADDRESS:
        for one in ADDRESS_ESCAPES:
            if one in raw:
                return True
    return False


def open_escape(tail: bytes) -> int:
    """Return where an unfinished escape at the end of `tail` begins; the length of `tail` if there is none."""
    at = tail.rfind(b"\\", max(0, len(tail) - 6))
    if at < 0 or not b"\\u00ff".startswith(tail[at : at + 4]) or len(tail) - at == 6:
        return len(tail)
    while at > 0 and tail[at - 1] == _BACKSLASH:
        at -= 1
    return at


def escaped_text(raw: bytes) -> tuple[bytes, list[tuple[int, int]]] | None:
    """Return `raw` with escapes as their characters, and pairs: a place in the result, and how much further it is in
    `raw`.

    None: no ASCII character is escaped. Encoders of some languages escape `+`, `=` and `&`, some every character, and
    all of them control characters: without this, a password with one would be found in a text and not in its JSON.
    """
    if not has_escapes(raw):
        return None
    found = [*_json_escapes(raw), *_address_escapes(raw)]
    if not found:
        return None
    found.sort()
    parts: list[bytes] = []
    shifts = [(0, 0)]
    at = shift = size = 0
    for start, end, letter in found:
        parts += (raw[at:start], letter)
        size += start - at + 1
        shift += end - start - 1
        shifts.append((size, shift))
        at = end
    parts.append(raw[at:])
    return b"".join(parts), shifts


def _json_escapes(raw: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield start, end and character of each escape of an ASCII character."""
    for mark in JSON_ESCAPES:
        at = raw.find(mark)
        while at >= 0:
            size = 6 if mark == b"\\u00" else 2
            code = _code(raw[at + 4 : at + 6]) if size == 6 else _BACKSPACE
            if 0 <= code < 128:
                # JSON inside JSON doubles the backslash.
                start = at
                while start > 0 and raw[start - 1] == _BACKSLASH:
                    start -= 1
                yield start, at + size, bytes((code,))
            at = raw.find(mark, at + size)


def _address_escapes(raw: bytes) -> Iterator[tuple[int, int, bytes]]:
    if len(raw) > _LONGEST_ADDRESS:
        return
    at = raw.find(_PERCENT)
    while at >= 0:
        code = _code(raw[at + 1 : at + 3])
        is_text = 32 <= code < 127 or code in _BLANKS
        if is_text:
            yield at, at + 3, bytes((code,))
        at = raw.find(_PERCENT, at + (3 if is_text else 1))


def _code(digits: bytes) -> int:
    """Return the number of two hexadecimal digits; -1: they are not."""
    try:
        return int(digits, 16)
    except ValueError:
        return -1
