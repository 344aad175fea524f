"""Find the secrets in bytes. Knows shapes and how to find them fast; does not know what happens to them.

Bytes, because text is slow to translate, and because bodies and output are bytes anyway. Long runs of letters
and digits are found by translating everything to two characters and searching for sixteen of one; names
before a `=` or `:` by splitting there. For prose both run at memory speed and find nothing. (Measured for 4
KiB: one regex over everything 2,600 µs, a list of literals 60 µs, this 8 µs.)
"""

from __future__ import annotations

from playhead.host import native_core
from playhead.redact import clues, shapes
from playhead.redact.assignments import (
    BETWEEN,
    assigned,
    assigned_at,
    has_escaped_blanks,
    may_assign,
    without_escaped_blanks,
)
from playhead.redact.encoded_texts import FIRST_OF_TEXT, encoded_text, escaped_text, has_escapes
from playhead.redact.multipart import secret_fields
from playhead.redact.span_places import Span, apart, islands, literally, with_escapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator
    from typing import Any


# The kind of a base64 text that holds secrets: only they are replaced in it.
ENCODED = "encoded"
# How often a text inside a text is decoded: base64 of JSON with escapes. A text of a stranger may have any number.
_DEPTH = 3
# What may directly precede base64 text that does not begin where its run does.
_BEFORE_ENCODED = frozenset(b"\\+/")

_LONG = shapes.LONG
_RUN = b"a" * _LONG
_RUNS = bytes(97 if (chr(c).isalnum() and c < 128) or c in b"_-" else 32 for c in range(256))
# JSON doubles the backslashes of a text, and the rules allow 15 before a quote: such a text must be examined alone.
DEEP = b"\\" * 16
_SHORT = 1024
# A quick look at the last three letters before a `=` or `:`, in four classes of letters. All names of secrets
# end in `ord`, or in one of r, s, k, p (a), then e or w (e), then d, t, y or n (n): secret, passwd, key, token, pwd.
_CLASSES = {"=": b":=", "a": b"rskpRSKP", "e": b"weWE", "n": b"dtynDTYN", "o": b"oO"}
_CLASS_OF = {letter: ord(name) for name, letters in _CLASSES.items() for letter in letters}
# As those classes: beside the above, the ends of cookie, sessionid and authorization.
_ENDINGS = (b"aen=", b"oan=", b"axe=", b"nxn=", b"axn=", b"xon=")
_LAST_THREE = bytes(_CLASS_OF.get(letter, ord("x")) for letter in range(256))
# Characters that may directly precede a run that is a secret only because of its context.
_TELLING = frozenset(b".: +0=/")
_DOT = ord(".")
_HEXADECIMAL = b"0123456789abcdef-"
# The beginning of a key that could also stand in a UUID.
_HEXADECIMAL_START = b"fc-"
# Base64 of at least this length is a file, not a secret: images in requests, attachments, archives. Its middle is not
# searched, because its `+` and `/` cut it into thousands of runs, each of which looks like a token.
_BLOCK = 1024
_BLOCKS = bytes(97 if (chr(c).isalnum() and c < 128) or c in b"+/" else 32 for c in range(256))
_IN_BLOCK = b"a" * _BLOCK
# The ends of such a block are searched: a long token of base64 is a secret because of the word before it.
_BLOCK_END = 64
# Bytes with a NUL and at least this long are searched in their texts alone (see `_islands`).
BINARY = 64 * 1024
# How far behind the start of a match its literal is, at least and at most, by the first literal of a rule. Other rules
# search the whole text, which takes 50 ns for each byte: three such rules made 1 MB of source code take 70 ms.
OFFSETS: dict[bytes, tuple[int, int]] = {
    **dict.fromkeys((b"1//0", b"pat", b"?key=", b"code=", b"login ", b"curl", b"mysql"), (0, 0)),
    b"sshpass": (0, 0),
    b"Q~": (4, 4),
    b"-us": (32, 32),
    b".atlasv1.": (14, 14),
    # Of a list in YAML: indented by at most 64 blanks.
    b"ignature=": (1, 1),
    b"-signature": (5, 6),
    b'"auth': (0, 15),
    b"oken: ": (1, 67),
    b"uthorization": (1, 1),
    b"ookie:": (1, 5),
    b"essionid=": (0, 4),
}


def suspicious(
    raw: bytes, known: tuple[bytes, ...] = (), needles: Any = None, *, depth: int = _DEPTH
) -> bool:
    """Return whether `raw` may hold a secret. False is certain, for texts and for JSON that holds them.

    `known` are runs of secrets that are known literally (see `run_of`), `needles` the same for the native core.
    `depth`: how often texts inside texts are decoded.
    """
    if len(raw) >= BINARY and b"\0" in raw:
        for one in known:
            if one in raw:
                return True
        return any(suspicious(raw[start:end]) for start, end in islands(raw))
    if DEEP in raw:
        return True
    core = native_core.core
    if core is not None and (needles is not None or not known):
        found = core.clues(clues.scanner(), needles, raw, clues.LOOK)
        return is_confirmed(raw, found, known, needles, depth)
    if depth and has_escapes(raw) and _is_in_escapes(raw, known, needles, depth):
        return True
    if b"@" in raw and b"://" in raw and next(_in_urls(raw), None) is not None:
        return True
    runs = _runs(raw)
    if len(raw) >= _BLOCK:
        # A known secret may stand inside a block of base64.
        for one in known:
            if one in raw:
                return True
    at = runs.find(_RUN)
    if at >= 0 and _is_in_runs(raw, runs, at, known, depth):
        return True
    is_marked = at >= 0
    for word in shapes.WORDS_THAT_MARK:
        is_marked = is_marked or word in raw
    if is_marked and next(_marked(raw, at), None) is not None:
        return True
    # The quick look is one only where it is short: of so few letters, little can be skipped.
    if len(raw) < _SHORT:
        classes = raw.translate(_LAST_THREE, BETWEEN)
        if b"\\" in raw and has_escaped_blanks(raw):
            classes += without_escaped_blanks(raw).translate(_LAST_THREE, BETWEEN)
        for one in _ENDINGS:  # a loop: `any` of a generator makes a Python call for each of them
            if one in classes:
                break
        else:
            return False
    return may_assign(raw)


def is_confirmed(
    raw: bytes, found: Any, known: tuple[bytes, ...], needles: Any, depth: int = _DEPTH
) -> bool:
    """Return whether `raw` may hold a secret, given what the native core found: None (nothing), True (certainly), or
    `Clues` (places to examine). `known` and `needles` as for `suspicious`.
    """
    if found is None or found is True or DEEP in raw:
        return found is True or DEEP in raw
    decoded = 0 if depth else len(raw)
    for at, _ in found[1]:
        if at >= decoded and (text := encoded_text(raw, at)) is not None:
            if suspicious(text[2], known, needles, depth=depth - 1):
                return True
            decoded = text[1]
    if depth and found[0] & clues.ESCAPES and _is_in_escapes(raw, known, needles, depth):
        return True
    return next(_at_clues(raw, found, depth), None) is not None


def _is_in_escapes(raw: bytes, known: tuple[bytes, ...], needles: Any, depth: int) -> bool:
    """Return whether escapes of JSON or of addresses hide a secret."""
    plain = escaped_text(raw)
    return plain is not None and suspicious(plain[0], known, needles, depth=depth - 1)


def _at_clues(raw: bytes, found: clues.Clues, depth: int) -> Iterator[Span]:
    """Yield the secrets at the places that the native core found, in the same order as `_in_text`."""
    rules, runs, names = found
    if rules & clues.KEY:
        yield from ((*one.span(), "pem") for one in shapes.pem().finditer(raw))
    if runs:
        yield from _at_runs(raw, runs, depth)
    for at in names:
        yield from assigned_at(raw, at)
    if rules & clues.FORM:
        yield from secret_fields(raw)
    if marked := clues.rules_in(rules):
        yield from _matches(raw, marked)
    if rules & clues.URL:
        yield from _in_urls(raw)


def _runs(raw: bytes) -> bytes:
    """Return `raw` with `a` for each character of a run and a blank for all others, and for those in the middle of
    blocks of base64.
    """
    runs = raw.translate(_RUNS)
    if len(raw) < _BLOCK:
        return runs
    blocks = raw.translate(_BLOCKS)
    at = blocks.find(_IN_BLOCK)
    if at < 0:
        return runs
    parts: list[bytes] = []
    done = 0
    while at >= 0:
        end = blocks.find(b" ", at + _BLOCK)
        if end < 0:
            end = len(raw)
        low, high = at + _BLOCK_END, end - _BLOCK_END
        parts += (runs[done:low], b" " * (high - low))
        done = high
        at = blocks.find(_IN_BLOCK, end)
    return b"".join((*parts, runs[done:]))


def run_of(value: bytes) -> bytes | None:
    """Return the beginning of the first long run in `value`; None: it has none."""
    at = value.translate(_RUNS).find(_RUN)
    return None if at < 0 else value[at : at + shapes.LONG]


def _is_in_runs(raw: bytes, runs: bytes, at: int, known: tuple[bytes, ...], depth: int) -> bool:
    """Return whether a long run may be a secret. Written without helper functions, because ids and paths bring the
    recorder's hot path here.
    """
    if b"PRIVATE KEY" in raw:
        return True
    size, find, may_start = len(raw), runs.find, shapes.seeker()
    decoded = 0 if depth else size
    while at >= 0:
        end = find(b" ", at + _LONG)
        if end < 0:
            end = size
        # For the first byte this examines the last byte instead: one check too many, and harmless.
        before = raw[at - 1]
        if (
            # Only one start is made of hexadecimal digits and dashes alone, as UUIDs and hashes are.
            (
                (raw[at:end].strip(_HEXADECIMAL) or raw.find(_HEXADECIMAL_START, at, end) >= 0)
                and may_start(raw, at, end) is not None
            )
            or before in _TELLING
            or (end < size and raw[end] == _DOT)
        ) and next(_in_run(raw, at, end, may_start), None) is not None:
            return True
        if (
            at >= decoded
            and (raw[at] in FIRST_OF_TEXT or before in _BEFORE_ENCODED)
            and (text := encoded_text(raw, at)) is not None
        ):
            if suspicious(text[2], known, depth=depth - 1):
                return True
            decoded = text[1]
        for run in known:
            if raw.find(run, at, end) >= 0:
                return True
        at = find(_RUN, end)
    return False


def spans(
    raw: bytes,
    values: dict[bytes, str] | None = None,
    needles: Any = None,
    *,
    options: bool = False,
    depth: int = _DEPTH,
) -> list[Span]:
    """Return every secret in `raw`, in order, none inside another.

    `values` are known secrets: literal bytes and their kind; `needles` as for `suspicious`. `options`: it is a command
    line. Without these, the result for a text is the same alone and within any event: a replay examines a request
    alone, and must find the same.
    """
    core = native_core.core
    found: list[Span] = []
    if values and (core is None or needles is None or core.holds(needles, raw)):
        found += literally(raw, values)
    if len(raw) >= BINARY and b"\0" in raw:
        for low, high in islands(raw):
            some = spans(raw[low:high], options=options, depth=depth)
            found += [(low + start, low + end, kind) for start, end, kind in some]
        return apart(found)
    may_escape = depth > 0
    if core is None:
        found += _in_text(raw, depth)
    else:
        clue = core.clues(clues.scanner(), None, raw, clues.FIND)
        if clue is not None:
            found += _at_clues(raw, clue, depth)
        may_escape = depth > 0 and clue is not None and clue[0] & clues.ESCAPES != 0
    if may_escape and (plain := escaped_text(raw)) is not None:
        inner = spans(plain[0], values, needles, options=options, depth=depth - 1)
        found += with_escapes(inner, plain[1])
    if options:
        found += [(*one.span(1), "option") for one in shapes.option().finditer(raw)]
    return apart(found)


def _in_text(raw: bytes, depth: int) -> Iterator[Span]:
    runs = _runs(raw)
    at = runs.find(_RUN)
    if at >= 0:
        yield from _in_runs(raw, runs, at, depth)
    yield from assigned(raw)
    yield from _marked(raw, at)
    yield from _matches(raw, shapes.MARKED_NAMES)
    if b"@" in raw:
        yield from _in_urls(raw)


def _in_runs(raw: bytes, runs: bytes, at: int, depth: int) -> Iterator[Span]:
    """Yield the secrets that a long run indicates; `at` is where the first run begins."""
    if b"PRIVATE KEY" in raw:
        yield from ((*one.span(), "pem") for one in shapes.pem().finditer(raw))
    yield from _at_runs(raw, _long_runs(raw, runs, at), depth)


def _long_runs(raw: bytes, runs: bytes, at: int) -> Iterator[tuple[int, int]]:
    while at >= 0:
        end = runs.find(b" ", at + _LONG)
        if end < 0:
            end = len(raw)
        yield at, end
        at = runs.find(_RUN, end)


def _at_runs(raw: bytes, runs: Iterable[tuple[int, int]], depth: int) -> Iterator[Span]:
    decoded = 0 if depth else len(raw)
    for at, end in runs:
        yield from _in_run(raw, at, end, shapes.seeker())
        # Both ends of a long block are runs, and the block is decoded once.
        if at >= decoded and (text := encoded_text(raw, at)) is not None:
            decoded = text[1]
            if spans(text[2], depth=depth - 1):
                yield (text[0], text[1], ENCODED)


def _in_run(raw: bytes, at: int, end: int, may_start: shapes.Seeker) -> Iterator[Span]:
    start = may_start(raw, at, end)
    while start is not None:
        hit = shapes.exact().match(raw, start.start())
        if hit is not None:
            yield _exact(hit)
        start = shapes.start_in_run().search(raw, hit.end() if hit else start.start() + 1, end)
    before = raw[at - 1 : at]
    if before in (b".", b":"):
        low = max(0, at - shapes.LONGEST_START_BEFORE_RUN)
        start_before = shapes.start_before_run().search(raw, low, at)
        if start_before and (hit := shapes.exact().match(raw, start_before.start())):
            yield _exact(hit)
    elif raw.endswith(shapes.ANY_WORD_BEFORE, 0, at):
        for word, kind in shapes.WORDS_BEFORE.items():
            if raw.endswith(word, 0, at) and (hit := shapes.after_word().match(raw, at)):
                if shapes.digit_or_capital().search(hit.group()):
                    yield (*hit.span(), kind)
                return
    elif before == b"/" and any(host in raw[max(0, at - 120) : at] for host in shapes.WEBHOOKS):
        yield (at, end, "webhook")
    if raw[end : end + 1] == b".":
        for letter in shapes.start_before_dot().finditer(raw, at, end + 1):
            if hit := shapes.exact().match(raw, letter.start()):
                yield _exact(hit)
                return


def _exact(hit: re.Match[bytes]) -> Span:
    return (*hit.span(), shapes.KINDS[(hit.lastindex or 1) - 1])


def _in_urls(raw: bytes) -> Iterator[Span]:
    at = raw.find(b"://")
    while at >= 0:
        if hit := shapes.url_password().match(raw, at):
            yield (*hit.span(1), "url")
        at = raw.find(b"://", at + 3)


def _marked(raw: bytes, at: int) -> Iterator[Span]:
    """Yield the secrets of rules with a mark; `at` is where the first long run begins, below 0: there is none."""
    if b"form-data;" in raw:
        yield from secret_fields(raw)
    if at >= 0:
        yield from _matches(raw, shapes.MARKED_RUNS)
    for word in shapes.WORDS_THAT_MARK:
        if word in raw:
            yield from _matches(raw, shapes.MARKED_WORDS)
            return


def _matches(raw: bytes, rules: tuple[shapes.MarkedRule, ...]) -> Iterator[Span]:
    for kind, literals, pattern in shapes.marked(raw, rules):
        offsets = OFFSETS.get(literals[0])
        hits = pattern.finditer(raw) if offsets is None else _near(raw, literals, pattern, *offsets)
        for hit in hits:
            yield (*hit.span(hit.lastindex or 0), kind)


def _near(
    raw: bytes, literals: tuple[bytes, ...], pattern: re.Pattern[bytes], least: int, most: int
) -> Iterator[re.Match[bytes]]:
    """Yield the matches that begin from `least` to `most` bytes before one of the literals."""
    for one in literals:
        at = raw.find(one)
        while at >= 0:
            # The nearest start first: one further back may be that of another literal.
            for start in range(at - least, max(0, at - most) - 1, -1):
                if (hit := pattern.match(raw, start)) is not None:
                    yield hit
                    break
            at = raw.find(one, at + 1)
