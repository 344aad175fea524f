"""Redact secrets in a stream that arrives in pieces, cut anywhere. Knows what may be the beginning of a secret;
does not know where the pieces come from or go to.

A piece that may end inside a secret waits for the next one. All others pass at once, so that they are on the
tape if the process is killed. Passed data still counts as context: after `Authorization: Bearer ` in one
piece, the beginning of the next is a secret.
"""

from __future__ import annotations

from playhead.host.later import Later
from playhead.redact import shapes
from playhead.redact.encoded_texts import escaped_text, open_escape, open_text
from playhead.redact.multipart import open_field
from playhead.redact.span_places import Span
from playhead.redact.spans import ENCODED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    from playhead.redact.redactor import Redactor
else:
    re = Later("re")  # not loaded at every start

Piece = tuple[bytes, int]

_CONTEXT = 64
# An escape such as `\u0041` takes six bytes for one.
_ESCAPED_CONTEXT = 6 * _CONTEXT
# Maximum distance from the end at which the beginning of an unfinished secret is searched, and maximum number of bytes
# that may wait.
_REACH = shapes.LONGEST
_SHORTEST_BEGINNING = 4
_RUN = bytes(c for c in range(128) if chr(c).isalnum() or c in b"_-.~+/%=:")


# Beginnings of secrets without a characteristic start (`shapes.MARKED_RUNS`), at the end of a piece, which
# must wait. The context that is kept of earlier pieces is shorter than these secrets. A few first letters may pass:
# they do not reveal the secret, and prose would wait at every other word.
_OPEN_MARKED = (
    rb"[\w~.-]{3}\dQ~[\w~.-]{0,34}",
    rb"(?<![0-9A-Za-z])[0-9a-f]{16,32}(?:-(?:u(?:s\d{0,2})?)?)?",
    rb"1//0[\w-]{0,1024}",
    rb"[A-Za-z0-9]{14}\.(?:a|at|atl|atla|atlas|atlasv|atlasv1|atlasv1\.[\w=-]{0,1024})?",
    rb"pat[A-Za-z0-9]{14}(?:\.[0-9a-f]{0,64})?",
    rb"(?<=ignature=)[0-9a-f]{1,64}",
    rb"(?<=://)(?=[A-Za-z_.~%-]{0,256}\d)[\w~-]{8,256}",
    rb"(?<=[?&]key=)[\w-]{4,512}",
    rb"(?<=code=)[\w%./~+-]{4,1024}",
    rb"(?:(?<=\"auth\":\")|(?<=\"auth\": \"))[A-Za-z0-9+/=]{4,2048}",
)
_LONGEST_MARKED = 2200


@shapes.cache
def _open_marked() -> re.Pattern[bytes]:
    return re.compile(b"(?:" + b"|".join(_OPEN_MARKED) + rb")\Z")


class StreamCleaner:
    """Redacts one stream. Pieces are (bytes, when); the returned pieces are clean and in order."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._context = b""
        self._held: list[Piece] = []

    def copy(self) -> StreamCleaner:
        """Return a cleaner that has come as far as this one: `feed` changes it, and may be interrupted."""
        made = StreamCleaner(self._redactor)
        made._context, made._held = self._context, self._held
        return made

    @property
    def waiting(self) -> int:
        """Return the number of bytes that may be the beginning of a secret and were not returned yet."""
        return sum([len(piece) for piece, _ in self._held])

    def feed(self, pieces: list[Piece], *, last: bool = False) -> list[Piece]:
        """Return the pieces that may be written now. `last`: the stream has ended."""
        waiting = [*self._held, *pieces]
        if not waiting:
            return []  # the stream has ended, and nothing waits
        raw = self._context + b"".join([piece for piece, _ in waiting])
        cut = len(raw) if last else self._unfinished(raw)
        if cut < len(raw):
            cut = self._before_secret(raw, waiting, cut)
        ready: list[Piece] = []
        at = len(self._context)
        for piece in waiting:
            if at + len(piece[0]) > cut:
                break
            ready.append(piece)
            at += len(piece[0])
        self._held = waiting[len(ready) :]
        clean = self._clean(raw[:at], ready)
        self._context = raw[max(0, at - _CONTEXT) : at]
        if b"\\u00" in self._context:
            self._context = raw[max(0, at - _ESCAPED_CONTEXT) : at]
        return clean

    def _clean(self, raw: bytes, pieces: list[Piece]) -> list[Piece]:
        # Most pieces hold nothing that could be a secret, and ruling that out is much quicker than a search.
        found = self._redactor.secrets_in(raw) if self._redactor.suspects(raw) else []
        if not found:
            return pieces
        clean: list[Piece] = []
        start = len(self._context)
        for piece, when in pieces:
            end = start + len(piece)
            kept = self._hidden(raw, start, end, found)
            if kept or not piece:  # a piece that is entirely inside a secret is dropped with it
                clean.append((kept, when))
            start = end
        return clean

    def _hidden(self, raw: bytes, start: int, end: int, found: list[Span]) -> bytes:
        """Return the bytes from `start` to `end`; a placeholder replaces each secret at its first visible byte."""
        first = len(self._context)
        parts, at = [], start
        for low, high, kind in found:
            if high <= start or low >= end or high <= first:
                continue
            if low > at:
                parts.append(raw[at:low])
            if max(low, first) >= start:
                made = self._redactor.placeholder(kind, raw[low:high]).encode()
                passed = raw[low:first]
                # Base64 that continues must be decodable with the part that was returned before.
                if kind == ENCODED and passed and made.startswith(passed):
                    made = made[len(passed) :]
                parts.append(made)
            at = min(high, end)
        return b"".join((*parts, raw[at:end]))

    def _before_secret(self, raw: bytes, waiting: list[Piece], cut: int) -> int:
        """Return `cut`, or the beginning of a secret that would be split there: its first piece would pass while its
        second waits.
        """
        found = self._redactor.secrets_in(raw)
        ends, at = [], len(self._context)
        for piece, _ in waiting:
            at += len(piece)
            ends.append(at)
        while True:
            at = max([end for end in ends if end <= cut], default=0)
            across = [low for low, high, _ in found if low < at < high]
            if not across:
                return cut
            cut = min(across)

    def _unfinished(self, raw: bytes) -> int:
        """Return where a secret may begin that has not ended yet; the length of `raw` if there is none."""
        low = max(0, len(raw) - _REACH)
        tail = raw[low:]
        places = [*self._open_places(tail), *self._open_escaped(tail)]
        first = low + min(places) if places else len(raw)
        # Context has passed already, and data of this length is not a secret.
        return max(first, len(self._context)) if len(raw) - first <= _REACH else len(raw)

    def _open_places(self, tail: bytes) -> list[int]:
        return [*_open_run(tail), *_open_context(tail), *self._open_values(tail)]

    def _open_escaped(self, tail: bytes) -> list[int]:
        """Return where a secret may begin that is written in escapes."""
        whole = open_escape(tail)
        decoded = escaped_text(tail[:whole])
        if decoded is None:
            return []
        text, shifts = decoded
        places = [whole] if whole < len(tail) else []
        # The last escape before a place says how much further the place is in the original.
        places += [
            place + max(shift for start, shift in shifts if start <= place)
            for place in self._open_places(text)
        ]
        return places

    def _open_values(self, tail: bytes) -> list[int]:
        places = []
        for value in self._redactor.values:
            at = tail.find(value[:_SHORTEST_BEGINNING], max(0, len(tail) - len(value) + 1))
            while at >= 0:
                if value.startswith(tail[at:]):
                    places.append(at)
                    break
                at = tail.find(value[:_SHORTEST_BEGINNING], at + 1)
        return places


def _open_run(tail: bytes) -> list[int]:
    """Return the start of a run that reaches the end and begins like a secret."""
    start = len(tail.rstrip(_RUN))
    if start == len(tail):
        return []
    places = [hit.start() for hit in shapes.open_start().finditer(tail, start)][:1]
    # A secret in base64 is found when all of it is there.
    if (begun := open_text(tail)) is not None:
        places.append(begun)
    # No generators here and below: each of their steps is a Python call, and every piece of every stream comes here.
    if tail.endswith(shapes.ANY_WORD_BEFORE, 0, start):
        places.append(start)
    for host in shapes.WEBHOOKS:
        if tail.find(host, start) >= 0:
            places.append(start)
    # From the start of the word: a pattern that may begin anywhere must not look at the whole tail.
    marked = _open_marked().search(tail, max(start - 1, len(tail) - _LONGEST_MARKED))
    if marked is not None:
        places.append(marked.start())
    return places


def _open_context(tail: bytes) -> list[int]:
    """Return the starts of unfinished secrets that only their surroundings reveal: a PEM block, a URL, an
    assignment.
    """
    places = []
    begun = tail.rfind(b"-----BEGIN")
    if begun >= 0 and b"-----END" not in tail[begun:]:
        places.append(begun)
    value = tail.rfind(b"assword>") + len(b"assword>")
    if value >= len(b"assword>") and not {*b"<\r\n"} & {*tail[value:].rstrip(b"<")}:
        places.append(value)
    field = open_field(tail)
    if field is not None:
        places.append(field)
    if b"://" in tail and (hit := shapes.open_url().search(tail)):
        places.append(hit.start(1))
    lowered = tail.lower()
    for word in shapes.LAST_WORDS:
        if word in lowered:
            places += [hit.start(1) for hit in shapes.open_assigned().finditer(tail)]
            break
    return places
