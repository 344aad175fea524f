"""Find out whether a text is two others joined, as by `2>&1`. Pure; knows only texts.

A line may hold parts of both streams: a progress bar on stderr ends without a line break, and the program prints to
stdout behind it. So the texts are compared character by character.
"""

from __future__ import annotations

# How many ways to split the text are followed at the same time. Streams that repeat each other have many.
_MOST_WAYS = 2_000
# The longest text that is compared in this way: about 4 s for ordinary output.
_MOST_CHARACTERS = 4_000_000


def is_interleaved(one: str, other: str, joined: str) -> bool:
    """Return whether `joined` has all characters of both texts, each text in its own order. False if that is too
    expensive to find out.
    """
    if len(one) + len(other) != len(joined) or len(joined) > _MOST_CHARACTERS:
        return False
    # The numbers of characters that may have come from `one` so far.
    ways = {0}
    for at, character in enumerate(joined):
        if len(ways) == 1:
            (taken,) = ways
            left = at - taken
            is_one = taken < len(one) and one[taken] == character
            is_other = left < len(other) and other[left] == character
            if is_one is not is_other:
                if is_one:
                    ways = {taken + 1}
                continue
        found = {taken for taken in ways if other[at - taken : at - taken + 1] == character}
        found |= {taken + 1 for taken in ways if one[taken : taken + 1] == character}
        if not found or len(found) > _MOST_WAYS:
            return False
        ways = found
    return len(one) in ways
