"""Placeholders, in the form of the secrets that they replace. Knows forms; the redactor knows which values are secrets.

A program that reads the claims of a token, checks the beginning and the length of a key, parses a YAML file or sends
a value back in an address must be able to do the same in a replay. So the secret of a token is its signature, and of a
cookie its value: the rest stays. Any other secret becomes a word without characters that need quoting:

- `redacted-KIND-HASH`, after the known beginning of a key (`sk-proj-`) and filled up with `x` to the secret's length;
- `redacted0KIND0HASH` where the secret has letters and digits alone;
- `0edac7edHASH` and zeros where it is a hexadecimal number;
- `733228HASH`, sixteen decimal digits, where it is a number: JSON such as `{"pin": 4711}` must stay JSON, and
  the number must fit the integers of JavaScript.

A secret that is shorter than that gets a longer placeholder, so passwords do not show their length. Tapes of earlier
versions have `[redacted:KIND:HASH]`, and secrets with blanks (a private key) still get this form.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

from playhead.encoding.jsonbytes import dumps, loads
from playhead.host.later import Later, pattern
from playhead.redact import shapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from typing import Any
else:
    re = Later("re")

COOKIES = frozenset({"cookie", "set-cookie", "cookie2", "set-cookie2"})
# Begins every signature that was replaced. Letters of base64, so that the token can still be decoded.
_MARK = "redacted_"
_LARGEST = 64 * 1024
_BRACKET = "[redacted:"
# Shortest secrets whose length is kept as a hexadecimal number.
_SHORTEST_NUMBER = 24
# `0edac7ed`: the word in hexadecimal digits. By chance, one number in 4 thousand million begins with it.
_NUMBER = "0edac7ed"
# `redact` on the keys of a telephone, before a hash of ten decimal digits.
_DECIMAL = "733228"
# All forms of placeholders, with the beginning of a key: for searches in texts.
PLACEHOLDER = (
    r"\[redacted:[a-z0-9_-]{1,40}:[0-9a-f]{8}\]"
    r"|(?:\b[A-Za-z][A-Za-z0-9_.-]{1,24}?)?redacted"
    r"(?:-[a-z0-9]{1,40}-[0-9a-f]{8}|0[a-z][a-z0-9]{0,40}?0[0-9a-f]{8})x*"
    rf"|\b{_NUMBER}[0-9a-f]{{8}}0{{8,}}\b"
    rf"|\b{_DECIMAL}[0-4][0-9]{{9}}\b"
)
_placeholder = pattern(PLACEHOLDER)
_parts = pattern(
    r"\[redacted:([a-z0-9_-]{1,40}):([0-9a-f]{8})\]|redacted-([a-z0-9]{1,40})-([0-9a-f]{8})"
    rf"|redacted0([a-z][a-z0-9]{{0,40}}?)0([0-9a-f]{{8}})|(?<![0-9a-f]){_NUMBER}()([0-9a-f]{{8}})0{{8}}"
    rf"|\.{_MARK}()([0-9a-f]{{8}})|(?<![0-9]){_DECIMAL}()([0-4][0-9]{{9}})(?![0-9])"
)
_one_word = pattern(r"[!-~]{1,4096}\Z")
_decimal = pattern(r"-?[0-9]{1,23}(?:\.[0-9]{1,23})?\Z")


@shapes.cache
def _beginning() -> re.Pattern[bytes]:
    """Return the known beginning of a key, with the words that tell its purpose: `sk-proj-`, `sk-ant-api03-`."""
    starts = [one for _, starts, _ in shapes.SHAPES for one in starts.split()]
    known = shapes.any_of(tuple(starts))
    return re.compile(rf"{known}(?:(?!redacted)[a-z]{{2,8}}[0-9]{{0,2}}[-_]){{0,2}}".encode())


def is_placeholder(text: str) -> bool:
    """Return whether this value is a placeholder: it comes from a replay, and must stay unchanged."""
    if "redacted" not in text and not text.startswith((_NUMBER, _DECIMAL)):
        return False
    if text.startswith(_BRACKET) or is_redacted_token(text):
        return True
    if _placeholder.fullmatch(text) is None:
        return False
    # Other text before the word may be a part of a secret.
    before = text.partition("redacted")[0]
    return (
        not before
        or text.startswith((_NUMBER, _DECIMAL))
        or _beginning().fullmatch(before.encode()) is not None
    )


def secrets_in_place(text: str) -> set[tuple[str, str]]:
    """Return kind and hash of each secret that was replaced in this text."""
    found = set()
    for hit in _parts.finditer(text):
        kind, digest = (one for one in hit.groups() if one is not None)
        found.add((kind or ("jwt" if hit.group().startswith(".") else "number"), digest))
    return found


def placeholder_for(kind: str, digest: str, secret: str) -> str:
    """Return the placeholder of a secret; `digest` distinguishes it from others."""
    if not _one_word.match(secret):
        return f"{_BRACKET}{kind}:{digest}]"
    size = len(secret)
    if _decimal.match(secret):
        return f"{_DECIMAL}{int(digest, 16):010d}"
    if size >= _SHORTEST_NUMBER and not secret.strip("0123456789abcdef"):
        return f"{_NUMBER}{digest}".ljust(size, "0")
    beginning = ""
    if known := _kind_of(secret):
        # The same kind wherever the key is found: in a header, in a field or in a text.
        kind, start = known, _beginning().match(secret.encode())
        beginning = "" if start is None else start.group().decode()
    # If the secret part has only letters and digits, as in `ghp_…`, so has the placeholder: programs check such keys
    # with a pattern.
    if secret[len(beginning) :].isalnum():
        made = f"{beginning}redacted0{kind}0{digest}"
        if len(made) <= size:
            return made.ljust(size, "x")
    return f"{beginning}redacted-{kind}-{digest}".ljust(size, "x")


def _kind_of(secret: str) -> str | None:
    """Return the kind of a key by its form."""
    hit = shapes.exact().fullmatch(secret.encode())
    return None if hit is None else shapes.KINDS[(hit.lastindex or 1) - 1]


def is_redacted_token(text: str) -> bool:
    """Return whether a token is a placeholder already: it comes from a replay, and must stay unchanged."""
    parts = text.split(".")
    return len(parts) == 3 and parts[2].startswith(_MARK) and text.startswith("eyJ")


def redacted_token(text: str, digest: str, clean: Callable[[Any], Any]) -> str | None:
    """Return a JSON Web Token with another signature of the same length; None: it is not one. `clean` redacts its
    claims.
    """
    parts = text.split(".")
    if len(parts) != 3 or not parts[0].startswith("eyJ") or len(text) > _LARGEST:
        return None
    head, claims = _decoded(parts[0]), _decoded(parts[1])
    if type(head) is not dict or type(claims) is not dict or not parts[2]:
        return None
    safe = clean(claims)
    payload = parts[1] if safe == claims else _encoded(safe)
    signature = f"{_MARK}{digest}".ljust(len(parts[2]), "x")
    # One character more than groups of four cannot be decoded.
    signature += "x" if len(signature) % 4 == 1 else ""
    return f"{parts[0]}.{payload}.{signature}"


def redacted_cookies(name: str, value: str, hide: Callable[[str], str]) -> str | None:
    """Return a `Cookie` or `Set-Cookie` header with redacted values; None: it is not one. Attributes stay."""
    first, *rest = value.split(";")
    if "=" not in first:
        return None
    hidden = _pair(first, hide)
    if name.lower().startswith("set-"):
        return ";".join([hidden, *rest])
    return ";".join([hidden, *(_pair(one, hide) if "=" in one else one for one in rest)])


def _pair(text: str, hide: Callable[[str], str]) -> str:
    name, _, value = text.partition("=")
    inner = value.strip()
    if len(inner) > 1 and inner[0] == inner[-1] == '"':
        return f'{name}="{hide(inner[1:-1])}"'
    return f"{name}={hide(inner)}"


def _decoded(part: str) -> Any:
    try:
        raw = a2b_base64(part.replace("-", "+").replace("_", "/") + "=" * (-len(part) % 4))
        return loads(raw.decode())
    except (ValueError, RecursionError):
        return None


def _encoded(value: Any) -> str:
    text = b2a_base64(dumps(value).encode(), newline=False).decode()
    return text.rstrip("=").replace("+", "-").replace("/", "_")
