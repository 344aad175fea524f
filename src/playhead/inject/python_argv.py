"""Python's own command line: which options keep us out, and how to say the same without them. Pure.

`-E` and `-I` make Python ignore PYTHONPATH, by which we come in. What they do beside that can be said
otherwise: `-E` is a matter of the variables alone, and `-I` is `-E -P -s`. `-S` keeps `site` from
running, and with it us: there is no other way to say that.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Sequence

_PYTHON = re.compile(r"python(?:(\d)(?:\.(\d+))?)?[a-z]*")
_TAKES_VALUE = "WX"
_ENDS_OPTIONS = "cm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A command line that lets us in, as far as there is one."""

    argv: list[str]
    # The variables named PYTHON… have to be hidden from the interpreter instead. False: nothing was
    # changed, because nothing had to be or because nothing lets us in.
    without_variables: bool


def is_python(program: str) -> bool:
    """Whether this is called as a Python interpreter is called."""
    return _PYTHON.fullmatch(os.path.basename(program)) is not None


def version_in(name: str) -> tuple[int, int] | None:
    """`python3.12` → (3, 12); None: the name does not say."""
    found = _PYTHON.fullmatch(name)
    if found is None or found[2] is None:
        return None
    return int(found[1]), int(found[2])


def is_closed(argv: Sequence[str]) -> bool:
    """Whether an option keeps us out."""
    return any(option in "EIS" for word in argv[1 : _end(argv)] for option in _letters(word))


def opened(argv: Sequence[str], version: tuple[int, int] | None) -> Opened:
    """The same without `-E` and `-I`. `-P` came with 3.11; where the version is unknown, nothing is
    tried: an option that the interpreter does not know would end the program."""
    end = _end(argv)
    letters = "".join(letter for word in argv[1:end] for letter in _letters(word))
    isolated_for_good = "I" in letters and (version is None or version < (3, 11))
    if "S" in letters or isolated_for_good or not ("E" in letters or "I" in letters):
        return Opened(argv=list(argv), without_variables=False)
    said = [argv[0]]
    for word in argv[1:end]:
        if not _letters(word):
            said.append(word)
            continue
        kept = _letters(word).replace("E", "").replace("I", "Ps") + word[1 + len(_letters(word)) :]
        if kept:
            said.append(f"-{kept}")
    return Opened(argv=[*said, *argv[end:]], without_variables=True)


def _end(argv: Sequence[str]) -> int:
    """Where the interpreter's options end: at the program, `-c`, `-m`, `-` or the end."""
    at = 1
    while at < len(argv):
        word = argv[at]
        if not word.startswith("-") or word == "-":
            return at
        if word.startswith("--"):
            at += 2 if word == "--check-hash-based-pycs" else 1
            continue
        for place, letter in enumerate(word[1:], 1):
            if letter in _ENDS_OPTIONS:
                # `-Ic code`: the letters before `c` are options still.
                return at + 1 if place > 1 else at
            if letter in _TAKES_VALUE:
                at += 1 if word[place + 1 :] else 2
                break
        else:
            at += 1
    return at


def _letters(word: str) -> str:
    """The options bundled in one word, up to one that takes a value or ends them."""
    if not word.startswith("-") or word.startswith("--"):
        return ""
    letters = ""
    for letter in word[1:]:
        if letter in _TAKES_VALUE + _ENDS_OPTIONS:
            break
        letters += letter
    return letters
