"""The full-text index: what people type made into a question, and the answer into snippets. Knows
SQLite's FTS5, and is the only place that does; PostgreSQL's `tsvector` would stand beside it.

What people type are words. All of them have to be there; "some words" in quotes have to stand
together; a star at the end of a word stands for more letters. Nothing else means anything: every word
goes to FTS5 as a quoted string.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

Scope = Literal["prompt", "response", "tool", "error", "about"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

# Rows are numbered as runs are. `about`: name, command, tags, note.
TABLE = f"""
CREATE VIRTUAL TABLE texts USING fts5 ({", ".join(SCOPES)},
  tokenize = "unicode61 remove_diacritics 2")
"""

_WORDS = re.compile(r'"([^"]*)"?|(\S+)')
_MEANINGFUL = re.compile(r"\w")
# Neither is in any text (see `digest`): control characters are left out there.
BEGIN, END = "\x02", "\x03"
_MARKED = re.compile(f"{BEGIN}([^{END}]*){END}")
_ROOM = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """Some words around a hit. `hits` are the places in `text` that were searched for."""

    scope: Scope
    text: str
    hits: tuple[tuple[int, int], ...] = ()


def question(typed: str, scope: Scope | None = None) -> str | None:
    """For `MATCH`. None: there is no word in it."""
    words = []
    for phrase, word in _WORDS.findall(typed):
        text = phrase or word
        if not _MEANINGFUL.search(text):
            continue
        star = "*" if word.endswith("*") else ""
        bare = text.replace('"', " ").replace("\0", " ")
        words.append(f'"{bare}"{star}')
    if not words:
        return None
    joined = " ".join(words)
    return joined if scope is None else f"{{{scope}}} : ({joined})"


MATCHING = "SELECT rowid FROM texts WHERE texts MATCH :question"
# Which columns have a hit can be seen by the marks: so each is asked for its best stretch.
SNIPPETS = "SELECT rowid, {} FROM texts WHERE texts MATCH :question AND rowid = :run".format(  # noqa: S608  constants
    ", ".join(
        f"snippet(texts, {at}, '{BEGIN}', '{END}', '…', {_ROOM})" for at in range(len(SCOPES))
    )
)


def snippets(columns: tuple[str | None, ...]) -> tuple[Snippet, ...]:
    """Of one row that fits: one for each column in which something was found."""
    return tuple(
        _snippet(scope, said)
        for scope, said in zip(SCOPES, columns, strict=True)
        if said is not None and BEGIN in said
    )


def _snippet(scope: Scope, said: str) -> Snippet:
    flat = " ".join(said.split())
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
    return Snippet(scope=scope, text="".join([*text, flat[at:]]), hits=tuple(hits))
