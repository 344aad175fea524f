"""Replace secrets in data that is about to be written. Knows names, the host's own variables and placeholders;
does not know tapes.

A secret becomes a placeholder with a kind and a hash (see `forms`). The hash is keyed with a secret of the store: equal
secrets stay equal, so that a replay still matches, and guesses cannot be tested against the tape.
"""

from __future__ import annotations

from binascii import b2a_base64

from playhead.encoding.jsonbytes import quote, quote_as_is
from playhead.host import native_core
from playhead.host.later import Later
from playhead.host.lean import partial
from playhead.redact import clues
from playhead.redact.encoded_texts import encoded_like, encoded_text, escaped_text, from_base64
from playhead.redact.forms import (
    COOKIES,
    is_placeholder,
    placeholder_for,
    redacted_cookies,
    redacted_token,
)
from playhead.redact.names import is_secret_variable, may_hold
from playhead.redact.safe_keys import OWN_WAY, SafeKeys
from playhead.redact.span_places import Span, apart
from playhead.redact.spans import BINARY, DEEP, ENCODED, run_of, spans, suspicious

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    import hmac
    import json
    import re
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any
else:
    hashlib = Later("hashlib")
    hmac = Later("hmac")
    json = Later("json")
    re = Later("re")

_SHORTEST_VALUE = 8  # shorter values ("1", "true", "prod") occur in many texts
_SHORTEST_TEXT = 8
_MOST_PLACEHOLDERS = 256
_BASE64 = frozenset({"$bytes", "$bytearray", "$text", "b64"})


class Redactor:
    """Replaces secrets; one per run. Its knowledge is replaced as a whole (`renew`): threads can share it."""

    def __init__(
        self,
        *,
        key: bytes,
        variables: Mapping[str, str] | None = None,
        patterns: Iterable[str] = (),
        names: Iterable[str] = (),
        keep: Iterable[str] = (),
    ) -> None:
        """`names` are additional names of secrets, `keep` names and kinds (`jwt`) of values that are not redacted."""
        self.key = key
        self.patterns = tuple(patterns)
        self.names = tuple(names)
        self._own = [re.compile(pattern) for pattern in self.patterns]
        self.keep = tuple(keep)
        self._kept = frozenset(name.lower() for name in self.keep)
        self.safe_keys = SafeKeys(frozenset(name.lower() for name in self.names), self._kept)
        self._values: dict[bytes, str] = {}
        # Beginnings of long runs in those values, and values that have none: see `suspects`.
        self._runs: tuple[bytes, ...] = ()
        self._without_run: tuple[bytes, ...] = ()
        # Both of them, in the form that the native core searches for. None: there are none, or there is no core.
        self._needles: Any = None
        native_core.load()
        self._search = self.native_search()
        # By kind and secret, with the secret without escapes. A conversation repeats its messages and their secrets.
        self._placeholders: dict[tuple[str, bytes], tuple[str, bytes]] = {}
        # Called with each placeholder, its kind and its secret: a run with a vault keeps them.
        self.keeper: Callable[[str, str, bytes], None] | None = None
        # Redacted headers by their original form, for callers that redact the same headers repeatedly.
        self.known_headers: dict[Any, list[str]] = {}
        self.renew(variables or {})

    def renew(self, variables: Mapping[str, str]) -> bool:
        """Learn the secrets of these environment variables, in addition to those known already. Return whether there
        were new ones. A value that a variable no longer has stays a secret.
        """
        values = {
            value
            for name, value in variables.items()
            if len(value) >= _SHORTEST_VALUE
            and is_secret_variable(name)
            and name.lower() not in self._kept
        }
        encoded = {_utf8(one) for value in values for one in _spellings(value)}
        if encoded <= self._values.keys():
            return False
        known = {**self._values, **dict.fromkeys(encoded, "variable")}
        # Longest first: a value that contains another must not be cut in two by it.
        self._values = dict(sorted(known.items(), key=lambda one: len(one[0]), reverse=True))
        runs = {value: run_of(value) for value in known}
        self._runs = tuple({run for run in runs.values() if run is not None})
        self._without_run = tuple(value for value, run in runs.items() if run is None)
        self._needles = clues.needles((*self._runs, *self._without_run))
        self._search = self.native_search()
        # Replaced, not cleared: a thread that is redacting a header with the old values stores its result in the old
        # dict, which is no longer used.
        self.known_headers = {}
        return True

    def suspicion(self) -> Callable[[bytes], bool]:
        """Return a fast form of `suspects` that is valid until the next `renew`: for callers that need it for every
        event.
        """
        if self._own or self._without_run:
            return self.suspects
        if not self._runs:
            return suspicious
        return partial(suspicious, known=self._runs, needles=self._needles)

    def native_search(self) -> tuple[Any, Any] | None:
        """Return the rules and the known secrets that `suspects` searches for, in the form of the native core; valid
        until the next `renew`. None: there is no core, or only Python can search for some of them.
        """
        has_needles = self._needles is not None or not (self._runs or self._without_run)
        if native_core.core is None or self._own or not has_needles:
            return None
        return clues.scanner(), self._needles

    def suspects(self, encoded: bytes) -> bool:
        """Return whether this JSON may hold a secret. False is certain; True means that a search is needed."""
        core, search = native_core.core, self._search
        # What `suspicious` does first: all answers are searched here, and most hold nothing.
        may_search = core is not None and len(encoded) < BINARY
        if search and may_search and core.clues(*search, encoded, clues.LOOK) is None:
            return DEEP in encoded
        # A user's own pattern may fit anything.
        if self._own or suspicious(encoded, self._runs, self._needles):
            return True
        return bool(self._without_run) and any(value in encoded for value in self._without_run)

    def clean(self, frozen: Any) -> Any:
        """Return a copy of `frozen` (plain JSON) with every secret replaced."""
        return self._walk(frozen, self.clean_text)

    def clean_names(self, frozen: Any) -> Any:
        """Do the same for JSON in which `suspects` finds nothing: only names are left to check."""
        return self._walk(frozen, str)

    def clean_text(self, text: str, *, options: bool = False) -> str:
        """Redact a text. `options`: it is a command line, in which the word after `--password` is a secret."""
        if len(text) < _SHORTEST_TEXT:
            return self._clean_own(text) if self._own else text
        raw = _utf8(text)
        if not options and not self.suspects(raw):
            return text
        clean = self._replaced(raw, options=options)
        if clean is not raw:
            text = clean.decode("utf-8", "surrogatepass")
        return self._clean_own(text) if self._own else text

    def clean_suspect(self, text: str) -> str:
        """Do the same as `clean_text` where the native core says that the text may hold a secret."""
        raw = text.encode()
        clean = self._replaced(raw)
        return text if clean is raw else clean.decode("utf-8", "surrogatepass")

    def clean_bytes(self, raw: bytes) -> bytes:
        """Redact bodies and output."""
        clean = self._replaced(raw)
        if not self._own:
            return clean
        try:
            return self._clean_own(clean.decode()).encode()
        except UnicodeDecodeError:  # latin-1 maps every byte to a character and back
            return self._clean_own(clean.decode("latin-1")).encode("latin-1", "replace")

    @property
    def values(self) -> tuple[bytes, ...]:
        """Return the secrets that are known literally."""
        return tuple(self._values)

    def secrets_in(self, raw: bytes) -> list[Span]:
        """Return the positions of secrets in `raw`."""
        found = [
            one
            for one in spans(raw, self._values, self._needles)
            if one[2] not in self._kept
            and not is_placeholder(raw[one[0] : one[1]].decode("latin-1"))
        ]
        if not self._own:
            return found
        text = raw.decode("utf-8", "surrogateescape")
        for own in self._own:
            for hit in own.finditer(text):
                start, end = (len(_bytes(text[:at])) for at in hit.span())
                if start < end:
                    found.append((start, end, "own"))
        return apart(found)

    def clean_headers(self, headers: Iterable[tuple[str, str]]) -> list[list[str]]:
        return [self.clean_header(name, value) for name, value in headers]

    def clean_header(self, name: str, value: str) -> list[str]:
        return [name, self._header(name, value)]

    def clean_argv(self, words: Iterable[str]) -> list[str]:
        """Redact a command line: secrets in a word, and the value of `--password hunter2`."""
        clean: list[str] = []
        hidden = False
        for word in words:
            name, equals, value = word.partition("=")
            if hidden and word[:1] != "-":
                clean.append(self._hidden(word, "option"))
            elif equals and _is_option(name) and self._is_secret(name.lstrip("-")):
                clean.append(f"{name}={self._hidden(value, 'option')}")
            else:
                clean.append(self.clean_text(word))
            hidden = not equals and _is_option(word) and self._is_secret(word.lstrip("-"))
        return clean

    def placeholder(self, kind: str, secret: str | bytes) -> str:
        given = secret if isinstance(secret, bytes) else _utf8(secret)
        known = self._placeholders.get((kind, given))
        if known is None:
            raw = given
            if (plain := escaped_text(raw)) is not None:
                raw = plain[
                    0
                ]  # a placeholder that keeps the beginning must not end inside an escape
            if kind == ENCODED and (text := encoded_text(raw, 0)) is not None:
                return self._encoded_again(raw, text[2])
            digest = hmac.new(self.key, raw, hashlib.sha256).hexdigest()[:8]
            is_token = raw.startswith(b"eyJ") and raw.isascii()
            made = redacted_token(raw.decode(), digest, self.clean) if is_token else None
            known = made or placeholder_for(kind, digest, raw.decode("latin-1")), raw
            if made is None:  # the claims of a token may hold secrets that are learnt later
                if len(self._placeholders) >= _MOST_PLACEHOLDERS:
                    self._placeholders.clear()
                self._placeholders[kind, given] = known
        if self.keeper is not None:
            self.keeper(known[0], kind, known[1])
        return known[0]

    def _encoded_again(self, raw: bytes, text: bytes) -> str:
        # A program that decodes it in a replay gets the text with placeholders.
        clean = self.clean_bytes(text)
        again = (raw if clean == text else encoded_like(raw, clean)).decode("latin-1")
        if self.keeper is not None and clean != text:
            self.keeper(again, ENCODED, raw)
        return again

    def _replaced(self, raw: bytes, *, options: bool = False) -> bytes:
        """Return `raw` with secrets replaced; `raw` itself if there are none."""
        found = spans(raw, self._values, self._needles, options=options)
        if not found:
            return raw
        pieces, at = [], 0
        for start, end, kind in found:
            secret = raw[start:end]
            if is_placeholder(secret.decode("latin-1")) or kind in self._kept:
                continue
            pieces += [raw[at:start], self.placeholder(kind, secret).encode()]
            at = end
        return b"".join([*pieces, raw[at:]]) if pieces else raw

    def _clean_own(self, text: str) -> str:
        for own in self._own:
            text = own.sub(lambda hit: self.placeholder("own", hit.group()), text)
        return text

    def _walk(self, frozen: Any, text: Callable[[str], str]) -> Any:
        if type(frozen) is str:
            return text(frozen)
        if type(frozen) is dict:
            return {text(key): self._member(key, item, text) for key, item in frozen.items()}
        if type(frozen) is list:
            return [self._walk(item, text) for item in frozen]
        return frozen

    def _member(self, key: str, item: Any, text: Callable[[str], str]) -> Any:
        if type(item) is str:
            if key in _BASE64:
                return self._clean_base64(item)
            if key in OWN_WAY:
                return self.clean_text(item, options=True)
        elif type(item) is list:
            if key in OWN_WAY and set(map(type, item)) == {str}:
                return self.clean_argv(item)
            if key == "$tuple":
                return self._pair(item, text)
            if key == "$map":
                return [self._pair(pair, text) for pair in item]
        if self._is_secret(key) and may_hold(key, item):
            return self._conceal(item, "field")
        return self._walk(item, text)

    def _pair(self, pair: Any, text: Callable[[str], str]) -> Any:
        """Redact a header, or an item of a dict whose keys are not all texts."""
        if type(pair) is list and len(pair) == 2 and type(pair[0]) is str:
            return [text(pair[0]), self._member(pair[0], pair[1], text)]
        return self._walk(pair, text)

    def _clean_base64(self, text: str) -> str:
        raw = from_base64(text)
        if raw is None:
            return self.clean_text(text)  # a host's own field of that name
        clean = self.clean_bytes(raw)
        return text if clean == raw else b2a_base64(clean, newline=False).decode()

    def _header(self, name: str, value: str) -> str:
        if not self._is_secret(name):
            return self.clean_text(value)
        if name.lower() in COOKIES:
            cookies = redacted_cookies(name, value, lambda one: self._hidden(one, "header"))
            if cookies is not None:
                return cookies
        return self._hidden(value, "header")

    def _is_secret(self, name: str) -> bool:
        return self.safe_keys.is_secret(name)

    def _hidden(self, text: str, kind: str) -> str:
        if not text or is_placeholder(text):
            return text
        scheme, blank, rest = text.partition(" ")
        if blank and rest and scheme.lower() in ("bearer", "basic", "token"):
            return text if is_placeholder(rest) else f"{scheme} {self.placeholder(kind, rest)}"
        return self.placeholder(kind, text)

    def _conceal(self, item: Any, kind: str) -> Any:
        if type(item) is str:
            return self._hidden(item, kind)
        if type(item) is dict and next(iter(item), "")[:1] != "$":
            return {self.clean_text(key): self._conceal(value, kind) for key, value in item.items()}
        if type(item) is list:
            return [self._conceal(value, kind) for value in item]
        if item is None or type(item) is bool:
            return item
        if type(item) in (int, float):
            hidden = self._hidden(json.dumps(item), kind)
            return int(hidden) if hidden.isdigit() else hidden
        # A value with a codec is replaced as a whole: a value with a placeholder inside could not be decoded.
        return self.placeholder(kind, json.dumps(item, sort_keys=True))


_SHORTEST_ENCODED = 12
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def _spellings(value: str) -> tuple[str, ...]:
    """Return the value itself, and its forms in JSON, in a URL and in base64."""
    plain = (value, quote(value)[1:-1], quote_as_is(value)[1:-1], _in_address(value))
    return plain if len(value) < _SHORTEST_ENCODED else (*plain, *_in_base64(_utf8(value)))


def _in_address(value: str) -> str:
    return "".join([chr(one) if one in _UNRESERVED else f"%{one:02X}" for one in _utf8(value)])


def _in_base64(raw: bytes) -> list[str]:
    """Return the base64 characters that do not depend on the neighbouring bytes, for each of the three positions that
    the value can have in a group of three bytes.
    """
    found = []
    for before in range(3):
        text = b2a_base64(bytes(before) + raw, newline=False).decode().rstrip("=")
        # Characters at both ends also depend on neighbours.
        whole = text[(0, 2, 3)[before] : len(text) - (1 if (before + len(raw)) % 3 else 0)]
        found += [whole, whole.replace("+", "-").replace("/", "_")]
    return found


def _is_option(word: str) -> bool:
    return word[:1] == "-" and len(word) > 2


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
