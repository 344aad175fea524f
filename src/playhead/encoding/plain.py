"""Can JSON hold this value exactly, as it stands? Knows JSON's own types; not codecs, not secrets.

On the recorder's hot path: everything that is plain is encoded without another look.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


INT_MIN, INT_MAX = -(2**63), 2**63 - 1
DEEPEST = 100  # deeper than that nobody reads, and CPython 3.10 recurses in C at some 1,000
_MOST_KEYS = 10_000
_LONGEST_KEY = 200
# A few lists that hold each other several times over unfold to more than any tape can hold.
_MOST_PARTS = 100_000
_COUNTED_FROM = 3
_LEAVES = frozenset({str, bool, type(None)})


class Keys:
    """Which keys of the host's dicts may be written as they stand; those seen before are `known`.

    Here all but those that could be taken for a codec.
    """

    def __init__(self) -> None:
        # A set, and not a dict of answers: that it holds all keys of a dict is one question in C.
        self.known: set[str] = set()

    def is_safe(self, key: str) -> bool:
        return "$" not in key

    def learn(self, keys: Iterable[Any]) -> bool:
        """Whether all of these may be written; they are remembered if so."""
        for key in keys:
            if not isinstance(key, str) or not self.is_safe(key):
                return False
            if len(key) <= _LONGEST_KEY:
                if len(self.known) > _MOST_KEYS:
                    self.known = set()  # keys made of ids: do not grow with the run
                self.known.add(str.__str__(key))
        return True


_ANY_KEY = Keys()


def is_plain(value: Any, keys: Keys = _ANY_KEY, depth: int = 0) -> bool:
    """Whether JSON holds `value` exactly, so that it can be encoded as it stands.

    On the recorder's hot path: values by exact type (a `str` subclass may be an enum), leaves in
    line, and nothing is counted or remembered until it gets deep. Keys may be subclasses of `str`:
    to every encoder they are their text.
    """
    kind = type(value)
    if kind is dict:
        if depth > _COUNTED_FROM:
            return _is_plain_below(value, keys)
        if not keys.known.issuperset(value) and not keys.learn(value):
            return False
        value = value.values()
    elif kind is list:
        if depth > _COUNTED_FROM:
            return _is_plain_below(value, keys)
    elif kind is int:
        return bool(INT_MIN <= value <= INT_MAX)
    elif kind is float:
        # Other magnitudes are spelled differently by different encoders (1e16, 1e+16).
        return bool(1e-4 <= value < 1e16 or -1e16 < value <= -1e-4 or value == 0)
    else:
        return kind in _LEAVES
    for item in value:
        kind = type(item)
        if kind in _LEAVES:
            continue
        if kind is int:
            if INT_MIN <= item <= INT_MAX:
                continue
            return False
        if kind is list and len(item) == 2 and type(item[0]) is type(item[1]) is str:
            continue  # a header: every HTTP call has a dozen of them
        if not is_plain(item, keys, depth + 1):
            return False
    return True


def _is_plain_below(value: Any, keys: Keys) -> bool:
    """The same for what lies deep: here cycles come to an end, and what unfolds without one."""
    waiting = [(value, _COUNTED_FROM)]
    left = _MOST_PARTS
    while waiting:
        value, depth = waiting.pop()
        left -= 1
        if depth > DEEPEST or left < 0:
            return False
        if type(value) is dict:
            if not keys.known.issuperset(value) and not keys.learn(value):
                return False
            value = value.values()
        for item in value:
            if type(item) is dict or type(item) is list:
                waiting.append((item, depth + 1))
            elif not is_plain(item):
                return False
    return True
