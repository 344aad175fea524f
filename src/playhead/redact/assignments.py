"""Find secrets by the name that a text assigns them to: `password=…`, `"api_key": "…"`. Knows names before a sign and
which values are harmless; does not know other rules (`spans`).
"""

from __future__ import annotations

from playhead.host.later import Later
from playhead.redact import clues, shapes
from playhead.redact.span_places import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
else:
    re = Later("re")  # not loaded at every start

# Lowercase, `:` as `=`; quotes, escapes and blanks between a name and its value go.
_ASSIGNMENTS = bytes(61 if c == 58 else ord(chr(c).lower()) if c < 128 else c for c in range(256))
BETWEEN = b"\\\"' \t\n\r\f\v"


def may_assign(raw: bytes) -> bool:
    """Return whether a name of a secret stands before a `=` or `:`."""
    # In both forms, because the `t` in `C:\token` may belong to the name.
    return _assigns(raw) or (has_escaped_blanks(raw) and _assigns(without_escaped_blanks(raw)))


def has_escaped_blanks(raw: bytes) -> bool:
    return b"\\t" in raw or b"\\n" in raw or b"\\r" in raw


def without_escaped_blanks(raw: bytes) -> bytes:
    """Return `raw` with the blanks that JSON escapes as blanks."""
    return raw.replace(b"\\t", b" ").replace(b"\\n", b" ").replace(b"\\r", b" ")


def _assigns(raw: bytes) -> bool:
    assigned = raw.translate(_ASSIGNMENTS, BETWEEN)
    # No sign follows the last piece.
    if not clues.LAST_SIX.isdisjoint([piece[-6:] for piece in assigned.split(b"=")[:-1]]):
        return True
    return b";" in raw and b";pwd=" in assigned


def assigned(raw: bytes) -> Iterator[Span]:
    low = raw.lower()
    for word in shapes.LAST_WORDS:
        at = low.find(word)
        while at >= 0:
            yield from assigned_at(raw, at)
            at = low.find(word, at + len(word))


def assigned_at(raw: bytes, at: int) -> Iterator[Span]:
    """Yield the value behind the name whose last word begins at `at`, if it is a secret."""
    hit = shapes.assigned().match(raw, at)
    if hit is not None and _is_value(raw, hit):
        yield (*hit.span(hit.lastindex or 0), "assigned")


def _is_value(raw: bytes, hit: re.Match[bytes]) -> bool:
    """Return whether the text behind a name is a secret, and not code or prose."""
    quoted, bare = hit.groups()
    if quoted is not None:
        return not _harmless_quoted().match(quoted)
    end = hit.end(2)
    # Form fields, and variables in capitals, are not code: there every value counts.
    name = raw[hit.start() : hit.start() + 5]
    if name.isupper() or raw[end : end + 1] == b"&" or _is_parameter(raw, hit.start()):
        return bare[:1] not in (b"%", b"/")
    return raw[end : end + 1] not in (b"(", b"[") and not _harmless_bare().match(bare)


def _is_parameter(raw: bytes, at: int) -> bool:
    """Return whether the name that ends at `at` begins after a `?` or `&`."""
    while at > 0 and (raw[at - 1 : at].isalnum() or raw[at - 1 : at] in (b"_", b"-", b".")):
        at -= 1
    return raw[at - 1 : at] in (b"?", b"&")


@shapes.cache
def _harmless_bare() -> re.Pattern[bytes]:
    """Return the pattern of harmless values after `password=` in code: names of variables, calls and prose."""
    return re.compile(
        rb"(?:[A-Za-z_]\w*\..*|[A-Za-z_]+[.:]?|\.{3}.*|x{3,}|\*+|%.*|\$.*)\Z", re.DOTALL
    )


@shapes.cache
def _harmless_quoted() -> re.Pattern[bytes]:
    return re.compile(
        rb"(?:string|null|none|true|false|password|secret|token|\*+|x{3,}|\.{3}.*|<.*|\{.*|\$.*|%.*"
        rb"|your[-_ ].*|\[redacted:.*|redacted-[a-z0-9]{1,40}-[0-9a-f]{8}x*)\Z",
        re.DOTALL | re.IGNORECASE,
    )
