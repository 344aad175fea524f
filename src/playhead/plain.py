"""Can JSON hold this value exactly, as it stands? Knows JSON's own types; not codecs, not secrets.

On the recorder's hot path: everything that is plain is encoded without another look.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
DEEPEST = 100  # deeper than that nobody reads, and CPython 3.10 recurses in C at some 1,000
_MOST_KEYS = 10_000
_LONGEST_KEY = 200
# A few lists that hold each other several times over unfold to more than any tape can hold.
_MOST_PARTS = 100_000
_COUNTED_FROM = 3


class AnyKey(dict[str, bool]):
    """Keys that may be written as they stand: all but those that could be taken for a codec."""

    def __missing__(self, key: str) -> bool:
        safe = "$" not in key
        if len(key) <= _LONGEST_KEY:
            if len(self) > _MOST_KEYS:
                self.clear()  # keys made of ids: do not grow with the run
            self[key] = safe
        return safe


_ANY_KEY: Mapping[str, bool] = AnyKey()


def is_plain(value: Any, safe_keys: Mapping[str, bool] = _ANY_KEY, depth: int = 0) -> bool:
    """Whether JSON holds `value` exactly, so that it can be encoded as it stands.

    On the recorder's hot path: exact types only (a `str` subclass may be an enum), leaves are
    looked at in line, `safe_keys` answers by a dict look-up (see `redact.SafeKeys`), and nothing is
    counted or remembered until it gets deep.
    """
    kind = type(value)
    if kind is dict:
        if depth > _COUNTED_FROM:
            return _is_plain_below(value, safe_keys)
        for key, item in value.items():
            if type(key) is not str or not safe_keys[key]:
                return False
            kind = type(item)
            if kind is str or kind is NoneType or kind is bool:
                continue
            if kind is int:
                if INT_MIN <= item <= INT_MAX:
                    continue
                return False
            if not is_plain(item, safe_keys, depth + 1):
                return False
        return True
    if kind is list:
        if depth > _COUNTED_FROM:
            return _is_plain_below(value, safe_keys)
        for item in value:  # noqa: SIM110  a generator costs twice as much here
            if type(item) is not str and not is_plain(item, safe_keys, depth + 1):
                return False
        return True
    if kind is int:
        return bool(INT_MIN <= value <= INT_MAX)
    if kind is float:
        # Other magnitudes are spelled differently by different encoders (1e16, 1e+16).
        return bool(1e-4 <= value < 1e16 or -1e16 < value <= -1e-4 or value == 0)
    return kind is str or kind is bool or kind is NoneType


def _is_plain_below(value: Any, safe_keys: Mapping[str, bool]) -> bool:
    """The same for what lies deep: here cycles come to an end, and what unfolds without one."""
    waiting = [(value, _COUNTED_FROM)]
    left = _MOST_PARTS
    while waiting:
        value, depth = waiting.pop()
        left -= 1
        if depth > DEEPEST or left < 0:
            return False
        if type(value) is dict:
            if any(type(key) is not str or not safe_keys[key] for key in value):
                return False
            value = value.values()
        for item in value:
            if type(item) is dict or type(item) is list:
                waiting.append((item, depth + 1))
            elif not is_plain(item):
                return False
    return True
