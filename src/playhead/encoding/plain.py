"""Test whether JSON can hold a value exactly as it is. Knows JSON's own types; does not know codecs or secrets.

On the recorder's hot path: a plain value is encoded without further checks.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


INT_MIN, INT_MAX = -(2**63), 2**63 - 1
DEEPEST = 100  # deeper values are unreadable, and CPython 3.10 recurses in C at about 1,000
_MOST_KEYS = 10_000
_LONGEST_KEY = 200
# A few lists that contain each other several times expand to more than any tape can hold.
_MOST_PARTS = 100_000
_LEAVES = frozenset({str, bool, type(None)})


class Keys:
    """Decides which keys of dicts may be written unchanged; `known` holds those seen before.

    This class allows all keys except those that could be mistaken for a codec.
    """

    def __init__(self) -> None:
        # A set instead of a dict of results: one C operation tests whether it holds all keys of a dict.
        self.known: set[str] = set()

    def is_safe(self, key: str) -> bool:
        return "$" not in key

    def learn(self, keys: Iterable[Any]) -> bool:
        """Return whether all of these may be written; if so, remember them."""
        for key in keys:
            if not isinstance(key, str) or not self.is_safe(key):
                return False
            if len(key) <= _LONGEST_KEY:
                if len(self.known) > _MOST_KEYS:
                    self.known = set()  # for keys made of ids: do not grow with the run
                self.known.add(str.__str__(key))
        return True


_ANY_KEY = Keys()


def is_plain(value: Any, keys: Keys = _ANY_KEY) -> bool:
    """Return whether JSON holds `value` exactly, so that it can be encoded unchanged.

    On the recorder's hot path: one loop instead of recursion, checks by exact type (a `str` subclass may be an enum),
    leaves inline. Keys may be subclasses of `str`: every encoder writes them as text.
    """
    kind = type(value)
    if kind is not dict and kind is not list:
        return is_plain([value], keys)
    known = keys.known
    parts = [value]
    for part in parts:  # `parts` grows in the loop
        items = part
        if type(part) is dict:
            if not known.issuperset(part):
                if not keys.learn(part):
                    return False
                known = keys.known
            items = part.values()
        for item in items:
            kind = type(item)
            if kind in _LEAVES:
                continue
            if kind is int:
                if INT_MIN <= item <= INT_MAX:
                    continue
                return False
            if kind is dict:
                parts.append(item)
            elif kind is list:
                # A header is a pair of texts: every HTTP call has a dozen of them.
                if len(item) != 2 or not type(item[0]) is type(item[1]) is str:
                    parts.append(item)
            # Different encoders write other magnitudes differently (1e16, 1e+16).
            elif kind is not float or not (
                1e-4 <= item < 1e16 or -1e16 < item <= -1e-4 or item == 0
            ):
                return False
        if len(parts) > _MOST_PARTS:
            return False
    # Only a value with more parts than that can be too deep.
    return len(parts) <= DEEPEST or not _is_deeper_than(DEEPEST, value)


def _is_deeper_than(most: int, value: Any) -> bool:
    level = [value]
    for _ in range(most):
        inner = [part.values() if type(part) is dict else part for part in level]
        level = [item for items in inner for item in items if type(item) in (dict, list)]
        if not level:
            return False
    return True
