"""Full-text queries and snippets: turn typed words into a query, and matches into snippets. Knows the query
syntax of SQLite's FTS5 and loads nothing else. `text_index` fills the index; PostgreSQL has its own.

The input is a list of words, and all of them must occur. Words in double quotes must be adjacent; a star at
the end of a word matches any ending. Nothing else has a meaning: every word goes to FTS5 as a quoted string.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

Scope = Literal["prompt", "response", "tool", "error", "about"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

# Rows have the numbers of runs. `about`: name, command, tags, note.
TABLE = f"""
CREATE VIRTUAL TABLE texts USING fts5 ({", ".join(SCOPES)},
  tokenize = "unicode61 remove_diacritics 2")
"""

_WORDS = re.compile(r'"([^"]*)"?|(\S+)')
_MEANINGFUL = re.compile(r"\w")
# The marks around a hit. No text contains them (see `digest`): control characters are removed.
BEGIN, END = "\x02", "\x03"
_MARKED = re.compile(f"{BEGIN}([^{END}]*){END}")
# Characters around a hit, and the number of hits that are considered for the best place.
_BEFORE, _AFTER = 50, 170
_MOST_HITS = 200
# FTS5 fails if a query has some hundreds of words.
_MOST_WORDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """Some words around a hit. `hits` are the positions in `text` that match the query."""

    scope: Scope
    text: str
    hits: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """Words that must be adjacent. `goes_on`: the last word may be longer."""

    text: str
    goes_on: bool = False


def phrases(typed: str) -> tuple[Phrase, ...]:
    found: list[Phrase] = []
    for phrase, word in _WORDS.findall(typed.encode("utf-8", "replace").decode()):
        if len(found) == _MOST_WORDS:
            break
        text = phrase or word
        if _MEANINGFUL.search(text):
            bare = text.replace('"', " ").replace("\0", " ")
            found.append(Phrase(text=bare, goes_on=word.endswith("*")))
    return tuple(found)


def question(typed: str, scope: Scope | None = None) -> str | None:
    """Return the argument of `MATCH`. None: the text contains no word."""
    joined = " ".join(f'"{one.text}"{"*" if one.goes_on else ""}' for one in phrases(typed))
    if not joined:
        return None
    return joined if scope is None else f"{{{scope}}} : ({joined})"


MATCH = "texts MATCH :question"
MATCHING = f"SELECT rowid FROM texts WHERE {MATCH}"  # noqa: S608  a constant
# The marks show which columns have a hit. `highlight` is used instead of FTS5's own `snippet`, which compares all hits
# with each other: a word that occurs 30,000 times took 16 seconds.
SNIPPETS = "SELECT rowid, {} FROM texts WHERE texts MATCH :question AND rowid = :run".format(  # noqa: S608  constants
    ", ".join(f"highlight(texts, {at}, '{BEGIN}', '{END}')" for at in range(len(SCOPES)))
)


def snippets(columns: tuple[str | None, ...]) -> tuple[Snippet, ...]:
    """Return the snippets of one matching row: one for each column with a hit."""
    return tuple(
        _snippet(scope, said)
        for scope, said in zip(SCOPES, columns, strict=True)
        if said is not None and BEGIN in said
    )


def _snippet(scope: Scope, said: str) -> Snippet:
    """Return the part of a text that contains the most words of the query."""
    places = [
        (hit.start(), hit.group(1).casefold()) for hit in islice(_MARKED.finditer(said), _MOST_HITS)
    ]
    found = [len({word for at, word in places if 0 <= at - here < _AFTER}) for here, _ in places]
    best = places[found.index(max(found))][0]
    start, end = max(0, best - _BEFORE), best + _AFTER
    # Start and end between words, and keep both marks of a hit together.
    if start and (space := said.find(" ", start, best)) > 0:
        start = space + 1
    if end < len(said) and (space := said.rfind(" ", best + len(places[0][1]), end)) > best:
        end = space
    stretch = said[start:end]
    if stretch.rfind(BEGIN) > stretch.rfind(END):
        end = said.find(END, end) + 1 or len(said)
        stretch = said[start:end]
    text, hits = _unmarked(" ".join(stretch.split()))
    before, after = "…" if start else "", "…" if end < len(said) else ""
    shift = len(before)
    placed = tuple((one + shift, other + shift) for one, other in hits)
    return Snippet(scope=scope, text=f"{before}{text}{after}", hits=placed)


def _unmarked(flat: str) -> tuple[str, list[tuple[int, int]]]:
    text: list[str] = []
    hits: list[tuple[int, int]] = []
    length = at = 0
    for hit in _MARKED.finditer(flat):
        before, word = flat[at : hit.start()], hit.group(1)
        length += len(before)
        hits.append((length, length + len(word)))
        length += len(word)
        text += [before, word]
        at = hit.end()
    rest = flat[at:].replace(BEGIN, "").replace(END, "")
    return "".join([*text, rest]), hits
