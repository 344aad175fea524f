"""Full-text search in the catalogue: one interface, with FTS5 for SQLite and `tsvector` for PostgreSQL.

The rules of queries and snippets are in `fulltext`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Protocol

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Index,
    MetaData,
    Select,
    Table,
    Text,
    TextClause,
    and_,
    any_,
    cast,
    delete,
    insert,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, TSQUERY, TSVECTOR

from playhead.library import fulltext
from playhead.library.engine import runs, texts
from playhead.library.fulltext import BEGIN, END, SCOPES, Phrase, Scope, Snippet, phrases, snippets


class TextIndex(Protocol):
    """A full-text index. Rows have the numbers of runs."""

    @property
    def table(self) -> FromClause: ...

    @property
    def number(self) -> ColumnElement[int]: ...

    def put(self, connection: Connection, texts: Sequence[Mapping[str, Any]]) -> None:
        """Add rows, each with its `run` and a text for every scope."""

    def drop(self, connection: Connection, numbers: Sequence[int]) -> None: ...

    def clear(self, connection: Connection) -> None: ...

    def holds(self, typed: str, scope: Scope | None) -> ColumnElement[bool] | TextClause | None:
        """The condition on a row of `table`. None: the typed text contains no word."""

    def few(
        self, connection: Connection, typed: str, scope: Scope | None
    ) -> ColumnElement[bool] | None:
        """The same condition as one on a row of `runs`, if it is cheap. None: use `holds`."""

    def matching(self, typed: str, scope: Scope | None) -> Select[Any] | Any:
        """Return the numbers of the runs that match the condition."""

    def snippets(
        self, connection: Connection, numbers: Sequence[int], typed: str, scope: Scope | None
    ) -> Mapping[int, tuple[Snippet, ...]]:
        """Return the snippets of each of these runs."""


_PUT = text(
    f"INSERT INTO texts (rowid, {', '.join(SCOPES)}) VALUES (:run, {', '.join(f':{s}' for s in SCOPES)})"  # noqa: S608  names of columns
)
_DROP = text("DELETE FROM texts WHERE rowid = :run")


class Fts5:
    """See `text_index.TextIndex`."""

    @property
    def table(self) -> FromClause:
        return texts

    @property
    def number(self) -> ColumnElement[int]:
        return texts.c.rowid

    def put(self, connection: Connection, texts: Sequence[Mapping[str, Any]]) -> None:
        if texts:
            connection.execute(_PUT, texts)

    def drop(self, connection: Connection, numbers: Sequence[int]) -> None:
        if numbers:
            connection.execute(_DROP, [{"run": number} for number in numbers])

    def clear(self, connection: Connection) -> None:
        connection.execute(text("DROP TABLE texts"))
        connection.execute(text(fulltext.TABLE))

    def holds(self, typed: str, scope: Scope | None) -> TextClause | None:
        asked = fulltext.question(typed, scope)
        return None if asked is None else text(fulltext.MATCH).bindparams(question=asked)

    def few(self, connection: Connection, typed: str, scope: Scope | None) -> None:
        return None

    def matching(self, typed: str, scope: Scope | None) -> Any:
        asked = fulltext.question(typed, scope)
        return text(fulltext.MATCHING).bindparams(question=asked).columns(runs.c.number)

    def snippets(
        self, connection: Connection, numbers: Sequence[int], typed: str, scope: Scope | None
    ) -> dict[int, tuple[Snippet, ...]]:
        asked = fulltext.question(typed, scope)
        found: dict[int, tuple[Snippet, ...]] = {}
        # One at a time: for a list of numbers FTS5 reads all matches of the question.
        for number in numbers if asked is not None else ():
            values = {"question": asked, "run": number}
            row = connection.execute(text(fulltext.SNIPPETS), values).first()
            if row is not None:
                found[number] = fulltext.snippets(tuple(row[1:]))
        return found


metadata = MetaData()
# In `lexemes`, a word of a scope begins with this. No word of a text has a colon.
_MARKS: Mapping[Scope, str] = {scope: f":{scope[0]}:" for scope in SCOPES}
LEXEMES_OF_VERSION_2 = "UPDATE texts SET lexemes = array_to_tsvector(ARRAY(SELECT {} {}))".format(  # noqa: S608  constants
    f"unnest(tsvector_to_array({' || '.join(f'{scope}_words' for scope in SCOPES)}))",
    " ".join(
        f"UNION ALL SELECT '{_MARKS[scope]}' || unnest(tsvector_to_array({scope}_words))"
        for scope in SCOPES
    ),
)
words = Table(
    "texts",
    metadata,
    Column("run", BigInteger, primary_key=True, autoincrement=False),
    *(Column(scope, Text, nullable=False) for scope in SCOPES),
    *(Column(f"{scope}_words", TSVECTOR, nullable=False) for scope in SCOPES),
    # All words without their positions, plain and with the mark of their scope. One index over this column is
    # smaller than one for each scope, and its statistics let the planner tell rare words from common ones.
    Column("lexemes", TSVECTOR, nullable=False, server_default=""),
)
Index("texts_by_lexeme", words.c.lexemes, postgresql_using="gin")

# A word as FTS5's unicode61 tokenizer defines it.
_WORD = re.compile(r"[^\W_]+")
# PostgreSQL stores no position beyond this one, no more positions per word, and no longer words.
_LAST_PLACE = 16_383
_MOST_PLACES = 255
_LONGEST = 500
# A tsvector has at most a megabyte; words beyond it are not found. Texts of a run have 640 KiB.
_LARGEST = 1_000_000
# Matches of words that are counted; a page of them is then found by their numbers.
MOST_COUNTED = 2_000


class TsVector:
    """See `text_index.TextIndex`."""

    @property
    def table(self) -> FromClause:
        return words

    @property
    def number(self) -> ColumnElement[int]:
        return words.c.run

    def put(self, connection: Connection, texts: Sequence[Mapping[str, Any]]) -> None:
        if texts:
            connection.execute(insert(words), [_row(one) for one in texts])

    def drop(self, connection: Connection, numbers: Sequence[int]) -> None:
        if numbers:
            connection.execute(delete(words).where(words.c.run.in_(numbers)))

    def clear(self, connection: Connection) -> None:
        connection.execute(delete(words))

    def holds(self, typed: str, scope: Scope | None) -> ColumnElement[bool] | None:
        """Return the condition that each phrase is completely in one of the scopes, as in FTS5. The index finds the
        rows with all words; only phrases need positions.
        """
        asked = [one for one in phrases(typed) if _query(one)]
        if not asked:
            return None
        scopes = SCOPES if scope is None else (scope,)
        mark = "" if scope is None else _MARKS[scope]
        all_words = " & ".join(_query(one, " & ", mark) for one in asked)
        adjacent = [told for one in asked if " <-> " in (told := _query(one))]
        return and_(
            _matches(words.c.lexemes, all_words),
            *(
                or_(*(_matches(words.c[f"{one}_words"], told) for one in scopes))
                for told in adjacent
            ),
        )

    def few(
        self, connection: Connection, typed: str, scope: Scope | None
    ) -> ColumnElement[bool] | None:
        """Fetch the numbers of up to 2,000 matches. PostgreSQL has statistics of common words only. It assumes that one
        run in 200 has any other word, and would look for a rare one from the newest run on, through the whole table.
        """
        ask = self.matching(typed, scope).limit(MOST_COUNTED + 1)
        numbers = list(connection.execute(ask).scalars())
        if len(numbers) > MOST_COUNTED:
            return None
        return runs.c.number == any_(cast(numbers, ARRAY(BigInteger)))

    def matching(self, typed: str, scope: Scope | None) -> Select[Any]:
        fits = self.holds(typed, scope)
        return select(words.c.run) if fits is None else select(words.c.run).where(fits)

    def snippets(
        self, connection: Connection, numbers: Sequence[int], typed: str, scope: Scope | None
    ) -> dict[int, tuple[Snippet, ...]]:
        asked = phrases(typed)
        if not asked:
            return {}
        ask = select(words.c.run, *(words.c[one] for one in SCOPES)).where(words.c.run.in_(numbers))
        return {number: _snippets(said, asked, scope) for number, *said in connection.execute(ask)}


def _matches(column: ColumnElement[Any], asked: str) -> ColumnElement[bool]:
    return column.op("@@")(cast(asked, TSQUERY))


def _snippets(
    texts: Sequence[str], asked: Sequence[Phrase], scope: Scope | None
) -> tuple[Snippet, ...]:
    shown = (
        _marked(said, asked) if scope in (None, one) else None
        for one, said in zip(SCOPES, texts, strict=True)
    )
    return snippets(tuple(shown))


def _row(texts: Mapping[str, Any]) -> dict[str, Any]:
    places = {scope: _places(texts[scope]) for scope in SCOPES}
    vectors = {f"{scope}_words": _vector(found) for scope, found in places.items()}
    plain: dict[str, Any] = {scope: texts[scope] for scope in SCOPES}
    return {"run": texts["run"], **plain, **vectors, "lexemes": _lexemes(places)}


def _places(said: str) -> dict[str, list[int]]:
    """Return the words of a text with their positions."""
    places: dict[str, list[int]] = {}
    for at, (word, _, _) in enumerate(_cut(said), 1):
        places.setdefault(word, []).append(min(at, _LAST_PLACE))
    return places


def _vector(places: Mapping[str, Sequence[int]]) -> str:
    return " ".join(
        f"'{word}':{','.join(map(str, found[:_MOST_PLACES]))}" for word, found in places.items()
    )


def _lexemes(places: Mapping[Scope, Mapping[str, Any]]) -> str:
    """Return all words, plain ones first: if there are too many, searches in all scopes still find them."""
    plain = dict.fromkeys(word for found in places.values() for word in found)
    marked = (_MARKS[scope] + word for scope, found in places.items() for word in found)
    size, kept = 0, []
    for word in chain(plain, marked):
        size += len(word.encode())
        if size > _LARGEST:
            break
        kept.append(f"'{word}'")
    return " ".join(kept)


def _query(phrase: Phrase, between: str = " <-> ", mark: str = "") -> str:
    """`'rate' <-> 'limit'`; with a star the last word matches as a prefix."""
    cut = [word for word, _, _ in _cut(phrase.text)]
    return between.join(f"'{mark}{word}'" for word in cut) + (
        ":*" if cut and phrase.goes_on else ""
    )


def _marked(said: str, asked: Sequence[Phrase]) -> str:
    """Return the text with marks around each hit."""
    cut = list(_cut(said))
    spans: list[tuple[int, int]] = []
    for phrase in asked:
        wanted = [word for word, _, _ in _cut(phrase.text)]
        spans += _hits(cut, wanted, goes_on=phrase.goes_on) if wanted else ()
    parts: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if start >= at:
            parts += [said[at:start], BEGIN, said[start:end], END]
            at = end
    return "".join([*parts, said[at:]])


def _hits(
    cut: Sequence[tuple[str, int, int]], wanted: Sequence[str], *, goes_on: bool
) -> Iterator[tuple[int, int]]:
    for at in range(len(cut) - len(wanted) + 1):
        last = cut[at + len(wanted) - 1][0]
        ends = last.startswith(wanted[-1]) if goes_on else last == wanted[-1]
        if ends and all(cut[at + n][0] == word for n, word in enumerate(wanted[:-1])):
            yield cut[at][1], cut[at + len(wanted) - 1][2]


def _cut(said: str) -> Iterator[tuple[str, int, int]]:
    """Yield words without case and accents, each with its position."""
    for hit in _WORD.finditer(said):
        yield _folded(hit[0][:_LONGEST]), hit.start(), hit.end()


@lru_cache(maxsize=65_536)
def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    apart = unicodedata.normalize("NFKD", word)
    return "".join(one for one in apart if not unicodedata.combining(one)).lower()


_INDEXES: dict[str, TextIndex] = {"sqlite": Fts5(), "postgresql": TsVector()}


def index_of(dialect: str) -> TextIndex:
    return _INDEXES[dialect]
