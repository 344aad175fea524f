"""What was pressed. Pure: bytes of a terminal in, names of keys out."""

from __future__ import annotations

import re

# CSI and SS3 sequences, with the parameters that modifiers add; then any single character.
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;]*([A-Za-z~])|O([A-Za-z]))|(?s:.)")
_ARROWS = {b"C": "right", b"D": "left", b"H": "home", b"F": "end"}
_NAMES = {" ": "space", "=": "+", "_": "-", "h": "?", "Q": "q", "\x03": "q", "\x04": "q"}


def keys_in(raw: bytes) -> list[str]:
    """`space`, `left`, `right`, `home`, `end`, or the character itself; unknown ones are left out."""
    found = []
    for hit in _SEQUENCE.finditer(raw):
        final = hit.group(1) or hit.group(2)
        if final:
            name = _ARROWS.get(final, "")
        else:
            letter = hit.group().decode("latin-1")
            name = _NAMES.get(letter, letter if letter.isprintable() else "")
        if name:
            found.append(name)
    return found
