"""Give the native core the literals and names to search for. Knows how they narrow a search; does not know the rules
(`shapes`), nor decides what a secret is (`spans`).

The core finds *clues*: places where a rule of `shapes` may find a secret. In places that the core skips, the rules
would not find a secret either; `tests/native` compares both for many texts.
"""

from __future__ import annotations

from playhead.host import native_core
from playhead.redact import shapes
from playhead.redact.encoded_texts import ADDRESS_ESCAPES, JSON_ESCAPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # The rules whose literal was found (a bit for each), the runs, and the names before a value.
    Clues = tuple[int, list[tuple[int, int]], list[int]]

# The last six letters of each name that a text assigns a secret to.
LAST_SIX = frozenset(
    name.encode("latin-1")[-6:]
    for name in (
        "password",
        "passwd",
        "secret",
        *(f"{word}{joint}key" for word in shapes.WORDS_OF_KEY for joint in ("", "_", "-")),
        # Any byte: TOKEN in capitals is telling behind every other word, also behind one that is not English.
        *(f"{chr(before)}token" for before in range(256)),
        "token",
        *("cookie", "sessionid", "phpsessid", "connect.sid", "authorization"),
    )
)
# Look: is there any clue? Find: return all of them.
LOOK, FIND = 1, 2
_MARKS, _URL, _POSITION = 0, 1, 2
_DIGITS = b"0123456789"
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_WORD = _DIGITS + _LETTERS + _LETTERS.upper() + b"_"

# Bytes around a literal, counted from its start, that its rule needs: from, to, and the class of all of them. Only for
# rules that distinguish upper and lower case: others may match where their literal is not.
_NARROW: dict[bytes, tuple[int, int, bytes]] = {
    b"@": (-16, 0, _WORD + b"~-"),
    b"Q~": (-1, 0, _DIGITS),
    b"-us": (3, 4, _DIGITS),
    b"1//0": (4, 24, _WORD + b"-"),
    b"pat": (17, 18, b"."),
    b"?key=": (5, 21, _WORD + b"-"),
    b"&key=": (5, 21, _WORD + b"-"),
    b"code=": (5, 21, _WORD + b"-"),
    b'"auth': (5, 6, b'\\"'),
    b"oken: ": (-1, 0, b"t"),
    b"curl": (4, 5, b" "),
}
_ANYWHERE = (0, 0, b"")
# Between a name and its value, directly behind the name.
_AFTER_NAME = b"\\\"':= \t\n\r\f\v"

# Starts that end in a dot: the run is the part behind it.
_STARTS_BEFORE_RUN = tuple(
    one.encode() for _, starts, _ in shapes.SHAPES for one in starts.split() if one[-1] == "."
)
_RULES = (*shapes.MARKED_RUNS, *shapes.MARKED_WORDS, *shapes.MARKED_NAMES)
_SPECIAL = len(_RULES)
FORM, KEY, _WEBHOOK, URL, _ASSIGNED, ESCAPES = (1 << (_SPECIAL + number) for number in range(6))
_OF_RUNS = (1 << len(shapes.MARKED_RUNS)) - 1 | KEY

_scanner: Any = None
_rules_of: dict[int, tuple[shapes.MarkedRule, ...]] = {}


def scanner() -> Any:
    """Return the tables of the core's search, made once a process."""
    global _scanner  # noqa: PLW0603  equal for all threads
    if _scanner is None:
        names = tuple(sorted(LAST_SIX))
        _scanner = native_core.core.scanner(
            _literals(),
            shapes.STARTS_IN_RUN,
            _STARTS_BEFORE_RUN,
            tuple(shapes.WORDS_BEFORE),
            names,
            _OF_RUNS,
            KEY.bit_length() - 1,
            _WEBHOOK.bit_length() - 1,
        )
    return _scanner


def needles(values: tuple[bytes, ...]) -> Any:
    """Return a search for these values. None: there are none, or some are too short for the core's table."""
    if native_core.core is None or not values or min(map(len, values)) < 2:
        return None
    return native_core.core.needles(values)


def rules_in(clues: int) -> tuple[shapes.MarkedRule, ...]:
    """Return the marked rules of these bits, in the order of the tables."""
    found = _rules_of.get(clues)
    if found is None:
        found = tuple(rule for number, rule in enumerate(_RULES) if clues >> number & 1)
        _rules_of[clues] = found
    return found


def _literals() -> tuple[tuple[Any, ...], ...]:
    both = LOOK | FIND
    names = _SPECIAL - len(shapes.MARKED_NAMES)
    rows: list[tuple[Any, ...]] = [
        (one, both if number < names else FIND, 0, _MARKS, number, *_NARROW.get(one, _ANYWHERE))
        for number, (_, literals, _) in enumerate(_RULES)
        for one in literals
    ]
    for one, bit, what in (
        (b"form-data;", FORM, _MARKS),
        (b"PRIVATE KEY", KEY, _MARKS),
        (b"://", URL, _URL),
        *((one, ESCAPES, _MARKS) for one in (*JSON_ESCAPES, *ADDRESS_ESCAPES)),
        *((host, _WEBHOOK, _MARKS) for host in shapes.WEBHOOKS),
    ):
        rows.append((one, both, 0, what, bit.bit_length() - 1, *_ANYWHERE))
    for word in shapes.LAST_WORDS:
        after = (len(word), len(word) + 1, _AFTER_NAME)
        rows.append((word, FIND, 1, _POSITION, _ASSIGNED.bit_length() - 1, *after))
    # The core looks for literals of one byte apart from the others, and expects them first.
    return tuple(sorted(rows, key=lambda row: len(row[0]) > 1))
