"""Read Python's own command line: the options that keep Playhead out, and equivalent options that do not. Pure.

`-E` and `-I` make Python ignore PYTHONPATH, through which Playhead is loaded. Their other effects can be achieved
differently: `-E` concerns only the variables, and `-I` is `-E -P -s`. `-S` disables `site`, and Playhead with it: it
has no equivalent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

_PYTHON = re.compile(r"python(?:(\d)(?:\.(\d+))?)?[a-z]*")
_TAKES_VALUE = "WX"
_ENDS_OPTIONS = "cm"


class OpenedCommandLine(NamedTuple):
    """A command line that lets Playhead in, if there is one."""

    argv: list[str]
    # The interpreter must not see the variables named PYTHON…: they are hidden from it instead. False: nothing was
    # changed, because nothing had to be, or because no change would let Playhead in.
    without_variables: bool


def is_python(program: str) -> bool:
    """Return whether this is the name of a Python interpreter."""
    return _PYTHON.fullmatch(os.path.basename(program)) is not None


def version_in(name: str) -> tuple[int, int] | None:
    """`python3.12` → (3, 12). None: the name has no version."""
    found = _PYTHON.fullmatch(name)
    if found is None or found[2] is None:
        return None
    return int(found[1]), int(found[2])


def is_closed(argv: Sequence[str]) -> bool:
    """Return whether an option keeps Playhead out."""
    options, _ = _options(argv)
    return any(letter in "EIS" for at in options for letter in _letters(argv[at]))


def opened(argv: Sequence[str], version: tuple[int, int] | None) -> OpenedCommandLine:
    """Return the command line without `-E` and `-I`.

    `-P` exists since 3.11. If the version is unknown, nothing is changed: an option that the interpreter does not
    know would end the program.
    """
    options, end = _options(argv)
    letters = "".join(_letters(argv[at]) for at in options)
    isolated_for_good = "I" in letters and (version is None or version < (3, 11))
    if "S" in letters or isolated_for_good or not ("E" in letters or "I" in letters):
        return OpenedCommandLine(argv=list(argv), without_variables=False)
    said = [_without(word) if at in options else word for at, word in enumerate(argv[:end])]
    return OpenedCommandLine(argv=[*filter(None, said), *argv[end:]], without_variables=True)


def _without(word: str) -> str:
    """Return a word of options with the same effect that lets Playhead in; empty if no option remains."""
    letters = _letters(word)
    kept = letters.replace("E", "").replace("I", "Ps") + word[1 + len(letters) :]
    return f"-{kept}" if kept else ""


def _options(argv: Sequence[str]) -> tuple[list[int], int]:
    """Return the positions of the words that hold options, and the end of the interpreter's own words: the program,
    `-c`, `-m`, `-` or the end.
    """
    options: list[int] = []
    at = 1
    while at < len(argv):
        word = argv[at]
        if not word.startswith("-") or word == "-":
            break
        if word.startswith("--"):
            at += 2 if word == "--check-hash-based-pycs" else 1
            continue
        options.append(at)
        last = word[1 + len(_letters(word)) : 2 + len(_letters(word))]
        at += 1
        if last and last in _ENDS_OPTIONS:
            break
        if last and last in _TAKES_VALUE and len(word) == 2 + len(_letters(word)):
            at += 1  # its value is the next word
    return options, at


def _letters(word: str) -> str:
    """Return the options bundled in one word, up to one that takes a value or ends the options."""
    for place, letter in enumerate(word[1:]):
        if letter in _TAKES_VALUE + _ENDS_OPTIONS:
            return word[1 : 1 + place]
    return word[1:]
