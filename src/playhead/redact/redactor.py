"""Replace secrets in what is about to be written. Knows shapes, names and the host's own values;
not tapes.

A secret becomes `[redacted:KIND:HASH]`, where HASH is keyed with a secret of the store: equal
secrets stay equal, so that a replay still matches, and nobody can test a guess against the tape.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from playhead.later import Later
from playhead.redact import finder, shapes

if TYPE_CHECKING:
    import hashlib
    import hmac
else:
    hashlib = Later("hashlib")
    hmac = Later("hmac")

_SHORTEST_VALUE = 8  # shorter values of variables ("1", "true", "prod") stand everywhere in texts
_MOST_KEYS = 10_000


class SafeKeys(dict[str, bool]):
    """Remembers for each key of the host's dicts whether it may be written as it stands.

    The recorder asks once a key and event; a dict's own look-up is the cheapest memory there is.
    """

    def __init__(self, *, names: bool) -> None:
        super().__init__()
        self.names = names

    def __missing__(self, key: str) -> bool:
        if len(self) > _MOST_KEYS:
            self.clear()  # keys made of ids: do not grow with the run
        safe = "$" not in key and not (self.names and shapes.is_secret_name(key))
        self[key] = safe
        return safe


class Redactor:
    """One per run. Immutable once made, so threads share it freely."""

    def __init__(
        self,
        *,
        key: bytes,
        variables: Mapping[str, str] | None = None,
        patterns: Iterable[str] = (),
        names: Iterable[str] = (),
    ) -> None:
        self._key = key
        self.patterns = tuple(patterns)
        self.names = tuple(names)
        self._own = [re.compile(pattern) for pattern in self.patterns]
        self._names = frozenset(name.lower() for name in self.names)
        values = {
            value
            for name, value in (variables or {}).items()
            if len(value) >= _SHORTEST_VALUE and shapes.is_secret_variable(name)
        }
        # Longest first: a value that contains another must not be cut in two by it.
        self._values = sorted(values, key=len, reverse=True)
        self._literals = tuple(_escaped(value) for value in self._values)
        self.safe_keys = SafeKeys(names=True)
        for name in self._names:
            self.safe_keys[name] = False

    def suspects(self, encoded: bytes) -> bool:
        """Whether this JSON may hold a secret. False is certain; True means: look closely.

        On the recorder's hot path, so spelled out: what stands before secrets that people choose
        (they may be all lowercase), then the residue for everything that a machine made.
        """
        if (
            b"assw" in encoded
            or b"secret" in encoded
            or (b"@" in encoded and b"://" in encoded)
        ):
            return True
        residue = encoded.translate(None, shapes.DELETED)
        if (
            shapes.RESIDUE.search(residue) is not None
            and shapes.RESIDUE.search(shapes.NUMBER.sub(b"", residue)) is not None
        ):
            return True
        for literal in self._literals:
            if literal in encoded:
                return True
        if self._own:
            text = encoded.decode("utf-8", "replace")
            return any(own.search(text) for own in self._own)
        return False

    def clean(self, frozen: Any) -> Any:
        """`frozen` (plain JSON) with every secret replaced; a new value, never changed in place."""
        if type(frozen) is str:
            return self.clean_text(frozen)
        if type(frozen) is dict:
            return {
                key: self._conceal(item, "field") if self._is_secret(key) else self.clean(item)
                for key, item in frozen.items()
            }
        if type(frozen) is list:
            return [self.clean(item) for item in frozen]
        return frozen

    def clean_text(self, text: str) -> str:
        for value in self._values:
            if value in text:
                text = text.replace(value, self.placeholder("variable", value))
        if len(text) > 11 and finder.may_hold(text):
            text = finder.replace(text, self._replace)
        for own in self._own:
            text = own.sub(lambda hit: self.placeholder("own", hit.group()), text)
        return text

    def clean_bytes(self, raw: bytes) -> bytes:
        """For bodies and output. Latin-1 maps every byte to a character and back."""
        if not self.suspects(raw):
            return raw
        try:
            return self.clean_text(raw.decode()).encode()
        except UnicodeDecodeError:
            return self.clean_text(raw.decode("latin-1")).encode("latin-1", "replace")

    def clean_headers(self, headers: Iterable[tuple[str, str]]) -> list[list[str]]:
        return [
            [name, self._conceal(value, "header") if self._is_secret(name) else self.clean_text(value)]
            for name, value in headers
        ]

    def placeholder(self, kind: str, secret: str) -> str:
        digest = hmac.new(self._key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return f"[redacted:{kind}:{digest.hexdigest()[:8]}]"

    def _is_secret(self, name: str) -> bool:
        if self._names and name.lower() in self._names:
            return True
        # A name that is remembered as safe is none: one look-up in place of two patterns.
        return not self.safe_keys[name] and shapes.is_secret_name(name)

    def _conceal(self, item: Any, kind: str) -> Any:
        if type(item) is str:
            if not item or item.startswith("[redacted:"):
                return item
            scheme, blank, rest = item.partition(" ")
            if blank and scheme.lower() in ("bearer", "basic", "token"):
                return f"{scheme} {self.placeholder(kind, rest)}"
            return self.placeholder(kind, item)
        if type(item) is dict:
            return {key: self._conceal(value, kind) for key, value in item.items()}
        if type(item) is list:
            return [self._conceal(value, kind) for value in item]
        return item if item is None or type(item) is bool else self.placeholder(kind, str(item))

    def _replace(self, hit: re.Match[str]) -> str:
        kind = shapes.KINDS[int((hit.lastgroup or "k0")[1:])] if _is_index(hit.lastgroup) else _kind(hit)
        inner = shapes.INNER.get(kind)
        whole = hit.group()
        secret = hit.group(inner) if inner else whole
        if secret.startswith("[redacted:"):
            return whole
        return whole.replace(secret, self.placeholder(kind, secret))


def _is_index(group: str | None) -> bool:
    return group is not None and group[:1] == "k" and group[1:].isdigit()


def _kind(hit: re.Match[str]) -> str:
    return next(shapes.KINDS[i] for i in range(len(shapes.KINDS)) if hit.group(f"k{i}") is not None)


def _escaped(value: str) -> bytes:
    """As the value stands inside JSON text."""
    text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text.encode("utf-8", "surrogatepass")
