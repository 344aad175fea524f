"""Placeholders that keep the form of a secret where programs parse it: JSON Web Tokens and cookies. Knows forms; the
redactor knows which values are secrets.

A program that reads the claims of a token, or a cookie jar, must find in a replay what it found then. The
secret of a token is its signature, and of a cookie its value: the rest stays.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

from playhead.encoding.jsonbytes import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

COOKIES = frozenset({"cookie", "set-cookie", "cookie2", "set-cookie2"})
# Begins every signature that was replaced. Letters of base64, so that the token can still be decoded.
_MARK = "redacted_"
_LARGEST = 64 * 1024


def is_redacted_token(text: str) -> bool:
    """Return whether a token is a placeholder already: it has gone through a replay, and must stay as it is."""
    parts = text.split(".")
    return len(parts) == 3 and parts[2].startswith(_MARK) and text.startswith("eyJ")


def redacted_token(text: str, digest: str, clean: Callable[[Any], Any]) -> str | None:
    """A JSON Web Token with another signature of the same length; None: it is not one. `clean` redacts its claims."""
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
    """A `Cookie` or `Set-Cookie` header whose values are hidden; None: it is not one. Attributes stay."""
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
