"""Loads the data of the screens. Knows the library and stories; call it in threads, because it blocks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead.errors import UsageError
from playhead.library.annotate import change_tags, remove
from playhead.library.catalogue import entry_at
from playhead.library.change_feed import ChangeFeed
from playhead.library.retention import is_safe
from playhead.library.run_rows import stamp_of
from playhead.library.search import ResultPage, Search, query
from playhead.story import Prices, Story, tell
from playhead.story.comparison.compare import Comparison, compare
from playhead.tape.reader import Tape
from playhead.workspace.blob_collection import collect
from playhead.workspace.history import FileHistory, read_history

_MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """Which runs to list."""

    words: str = ""
    status: str | None = None
    project: str | None = None
    sort: str = "-started"


class RunSource:
    """The runs of one store."""

    def __init__(
        self, home: Path, *, project: str | None = None, prices: Mapping[str, Any] | None = None
    ) -> None:
        self.home = home
        self.project = project
        self._prices = dict(prices or {})
        self._changes = ChangeFeed(home)

    def revision(self) -> int:
        """Return a number that changes whenever the list may have changed."""
        return self._changes.look()

    def runs(self, wanted: RunQuery) -> ResultPage:
        """Return the newest runs that match. UsageError: the text contains no word to search for."""
        search = Search(
            text=wanted.words,
            statuses=frozenset([wanted.status] if wanted.status else []),
            project=wanted.project,
            sort=wanted.sort,
            limit=_MOST,
        )
        return query(self.home, search, prices=self._prices)

    def tag(self, run: Path, text: str) -> None:
        """Add tags (`env=ci reviewed`); those with a minus before them are removed. UsageError: not a tag."""
        changed: dict[str, str | None] = {}
        for word in text.split():
            key, _, value = word.partition("=")
            changed.update({key[1:]: None} if word.startswith("-") else {key: value})
        change_tags(run, changed)

    def delete(self, run: Path) -> None:
        """Delete a run and the files that only this run uses. UsageError: it is kept, golden or still running."""
        if is_safe(entry_at(run)):
            raise UsageError(f"{run.name} is kept or golden.")
        remove(self.home, run.name)
        collect(self.home)

    def playhead(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command of Playhead on this store beside the application; its output must not reach the screen."""
        argv = [sys.executable, "-m", "playhead", *words, "--store", str(self.home)]
        null = subprocess.DEVNULL
        return subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, start_new_session=True)

    def state(self, run: Path) -> str:
        """Return a text that changes whenever the run changes."""
        return stamp_of(run, "")

    def story(self, run: Path) -> Story:
        return tell(Tape(run), prices=Prices(overrides=self._prices))

    def files(self, run: Path) -> FileHistory:
        return read_history(Tape(run), run.parent.parent)

    def comparison(self, left: Path, right: Path) -> Comparison:
        return compare(self.story(left), self.story(right))
