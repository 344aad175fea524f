"""Loads the data of the screens. Knows the library and stories; call it in threads, because it blocks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead.errors import UsageError
from playhead.host.user_name import user_name
from playhead.library.annotate import change_tags_by_words, remove
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

    def tag(self, run: Path, text: str) -> dict[str, str]:
        """Add tags (`env=ci reviewed`) and remove those with a minus (`-reviewed`). Return the tags of the run.

        UsageError: a word cannot be a tag, or a tag to remove does not exist.
        """
        typed = text.split()
        removed = [word[1:] for word in typed if word.startswith("-")]
        added = [word for word in typed if not word.startswith("-")]
        return change_tags_by_words(run, added, removed, by=user_name())

    def delete(self, run: Path) -> None:
        """Delete a run and the files that only this run uses. UsageError: it is kept, golden or still running."""
        if is_safe(entry_at(run)):
            raise UsageError(f"{run.name} is kept or golden, and is not deleted.")
        remove(self.home, run.name)
        collect(self.home)

    def export(self, run: str, file: str) -> str:
        """Write the run as a web page. Return the error message; empty: it is written."""
        argv = self._playhead("export", run, "--html", file)
        ended = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if ended.returncode == 0:
            return ""
        return ended.stderr.strip().removeprefix("playhead: ") or f"exit code {ended.returncode}"

    def open_viewer(self, run: str) -> None:
        """Open the run in the browser. The server is a process of its own, and continues after this application."""
        null = subprocess.DEVNULL
        argv = self._playhead("open", run)
        subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, start_new_session=True)

    def _playhead(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "playhead", *words, "--store", str(self.home)]

    def state(self, run: Path) -> str:
        """Return a text that changes whenever the run changes."""
        return stamp_of(run, "")

    def story(self, run: Path) -> Story:
        return tell(Tape(run), prices=Prices(overrides=self._prices))

    def files(self, run: Path) -> FileHistory:
        return read_history(Tape(run), run.parent.parent)

    def comparison(self, left: Path, right: Path) -> Comparison:
        return compare(self.story(left), self.story(right))
