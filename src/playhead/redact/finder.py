"""Find known shapes in a text by what they begin with. Knows where to look; `shapes` what for.

The same hits as `shapes.combined().sub` over the whole text, which takes a microsecond for each
character: a conversation of 100 KB would hold an agent's event loop for a tenth of a second. Looking
for the literals first takes a hundredth of that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from playhead.redact import shapes

# What each shape begins with, and how far before that it begins.
_LITERALS: tuple[tuple[bytes, int], ...] = (
    (b"-----BEGIN ", 0),
    *((literal, 0) for literal in (b"sk-", b"glpat-", b"AKIA", b"ASIA", b"ABIA", b"ACCA", b"AIza")),
    *((literal, 0) for literal in (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_")),
    *((literal, 0) for literal in (b"ya29.", b"xox", b"hooks.slack.com/services/", b"whsec_")),
    *((literal, 0) for literal in (b"hf_", b"gsk_", b"xai-", b"npm_", b"pypi-", b"SG.", b"eyJ")),
    (b"AccountKey=", 0),
    (b"k_live_", 1),
    (b"k_test_", 1),
    (b"earer ", 1),
    (b"asic ", 1),
)
# Of `password=…` and its like, in any case.
_WORDS = (
    b"passw",
    b"apikey",
    b"api_key",
    b"api-key",
    b"accesskey",
    b"access_key",
    b"privatekey",
    b"private_key",
)
_TOKENS = (b"token", b"secret")
_OWNERS = tuple(
    owner + joint
    for owner in (b"access", b"auth", b"refresh", b"id", b"client", b"session")
    for joint in (b"_", b"-", b"")
)
_SCHEME = re.compile(rb"[a-zA-Z0-9+.-]*\Z")
_LONGEST_SCHEME = 64


def may_hold(text: str) -> bool:
    """Whether a look is worth its while: most strings of most events are short and harmless.

    The same question as `Redactor.suspects` asks of a whole event. What is done with a text must
    not depend on what stands beside it: a replay looks at the request alone.
    """
    raw = text.encode("utf-8", "surrogatepass")
    return (
        shapes.RESIDUE.search(raw.translate(None, shapes.DELETED)) is not None
        or b"assw" in raw
        or b"secret" in raw
        or (b"@" in raw and b"://" in raw)
    )


def replace(text: str, conceal: Callable[[re.Match[str]], str]) -> str:
    """`text` with every known shape replaced by what `conceal` makes of it."""
    # One byte a character, so that places in the bytes are places in the text.
    raw = text.encode("ascii", "replace")
    starts = set(_starts(raw))
    if not starts:
        return text
    match = shapes.combined().match
    kept: list[str] = []
    done = 0
    for start in sorted(starts):
        if start < done:
            continue
        hit = match(text, start)
        if hit is not None:
            kept += (text[done:start], conceal(hit))
            done = hit.end()
    return "".join(kept) + text[done:]


def _starts(raw: bytes) -> Iterator[int]:
    for literal, before in _LITERALS:
        if literal in raw:
            yield from (at - before for at in _places(raw, literal) if at >= before)
    if b"@" in raw:
        for at in _places(raw, b"://"):
            yield from _scheme(raw, at)
    lowered = raw.lower()
    for word in _WORDS:
        if word in lowered:
            yield from _places(lowered, word)
    for word in _TOKENS:
        for at in _places(lowered, word):
            yield at
            yield from (at - len(owner) for owner in _OWNERS if lowered.endswith(owner, 0, at))


def _places(raw: bytes, literal: bytes) -> Iterator[int]:
    at = raw.find(literal)
    while at >= 0:
        yield at
        at = raw.find(literal, at + 1)


def _scheme(raw: bytes, end: int) -> Iterator[int]:
    """Where the scheme of an address may begin that ends here."""
    run = _SCHEME.search(raw[max(0, end - _LONGEST_SCHEME) : end])
    length = len(run.group()) if run else 0
    return (at for at in range(end - length, end) if raw[at : at + 1].isalpha())
