"""Fetch what the screens show. Knows the library and the story; called in threads, because it blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead.library.change_feed import ChangeFeed
from playhead.library.run_rows import stamp_of
from playhead.library.search import ResultPage, Search, query
from playhead.story import Prices, Story, tell
from playhead.story.compare import Comparison, compare
from playhead.tape.reader import Tape
from playhead.workspace.history import FileHistory, read_history

_MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """Which runs are to be listed."""

    words: str = ""
    status: str | None = None
    project: str | None = None


class RunSource:
    """One store, as the screens see it."""

    def __init__(
        self, home: Path, *, project: str | None = None, prices: Mapping[str, Any] | None = None
    ) -> None:
        self.home = home
        self.project = project
        self._prices = dict(prices or {})
        self._pulse = ChangeFeed(home)

    def beat(self) -> int:
        """Another number whenever the list may have changed."""
        return self._pulse.look()

    def runs(self, asked: RunQuery) -> ResultPage:
        """The newest that fit. UsageError: there is no word to search for."""
        wanted = Search(
            text=asked.words,
            statuses=frozenset([asked.status] if asked.status else []),
            project=asked.project,
            limit=_MOST,
        )
        return query(self.home, wanted, prices=self._prices)

    def state(self, run: Path) -> str:
        """Another text whenever the run has changed."""
        return stamp_of(run, "")

    def story(self, run: Path) -> Story:
        return tell(Tape(run), prices=Prices(overrides=self._prices))

    def files(self, run: Path) -> FileHistory:
        return read_history(Tape(run), run.parent.parent)

    def comparison(self, left: Path, right: Path) -> Comparison:
        return compare(self.story(left), self.story(right))
