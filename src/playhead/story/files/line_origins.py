"""Find the step that wrote each line of a file. Pure but for reading recorded content.

A file that was moved keeps its origins; so does content that is restored (`git stash pop`, `git checkout`):
the step that wrote the line counts, not the one that restored it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from playhead.errors import TapeDamaged, UsageError
from playhead.story.files.file_steps import FileStep, opcodes, text_of
from playhead.workspace.history import FileHistory
from playhead.workspace.tree_listing import Change, FileEntry, shown

# The share of equal lines above which a new file counts as moved.
_ALIKE = 0.5
# The steps that may have written a line: one, unless equal lines are next to each other. None: the line existed before
# the run.
Candidates = tuple[FileStep | None, ...]
Origins = list[Candidates]
START: Candidates = (None,)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedLine:
    """One line of the file as the run left it. `candidates` are all steps that may have written it: several if an
    equal line is next to it. `step` is the first of them.
    """

    number: int
    text: str
    candidates: Candidates

    @property
    def step(self) -> FileStep | None:
        return self.candidates[0]

    @property
    def is_certain(self) -> bool:
        return len(self.candidates) == 1


class LineOrigins:
    """Follows all files of a run, effect by effect, as far as the requested one needs."""

    def __init__(
        self,
        history: FileHistory,
        steps: list[FileStep],
        number: int = 0,
        *,
        earlier: Callable[[bytes, list[str]], Origins] | None = None,
    ) -> None:
        """`earlier` gives the origins of a file's lines at the start of the run: those of earlier runs."""
        self._earlier = earlier
        self._history = history
        self._steps = [one for one in steps if one.effect.workspace == number]
        self._number = number
        # Keyed by content: lines have the same origins under any path.
        self._known: dict[tuple[bytes, str], Origins] = {}

    def blame(self, path: bytes) -> list[BlamedLine]:
        """Return the lines with their origins. UsageError: the file never existed, or has no lines."""
        entry, last = self._last(path)
        lines = self._lines(entry, path)
        origins = self._at(path, last)
        return [
            BlamedLine(number=number, text=text, candidates=candidates)
            for number, (text, candidates) in enumerate(zip(lines, origins, strict=True), 1)
        ]

    def _last(self, path: bytes) -> tuple[FileEntry, int]:
        """Return the last version of a file, and the number of steps after which it existed."""
        found: tuple[FileEntry, int] | None = None
        start = self._history.start(self._number).get(path)
        if start is not None:
            found = start, 0
        for place, step in enumerate(self._steps, 1):
            for change in step.effect.changes:
                if change.path == path and change.after is not None:
                    found = change.after, place
        if found is None:
            raise UsageError(f"The run has no file {shown(path)} in its workspace.")
        return found

    def _at(self, path: bytes, place: int) -> Origins:
        """Return the origins of a file after this many steps."""
        before, change = self._change(path, place)
        if change is None or change.after is None:
            start = self._history.start(self._number).get(path)
            if start is None:
                raise _contradiction(path)
            lines = self._lines(start, path)
            return [START] * len(lines) if self._earlier is None else self._earlier(path, lines)
        key = (path, change.after.id)
        first = self._first(path, change.after.id, before)
        if first is not None:
            return self._at(path, first)
        if key in self._known:
            return self._known[key]
        step = self._steps[before]
        source = self._replacement(step, change)
        if source is None:
            source = change if change.before is not None else self._source(step, change)
        if source is None:
            origins: Origins = [(step,)] * len(self._lines(change.after, path))
        else:
            old = self._at(source.path, before)
            origins = self._merged(source, change, step, old)
        self._known[key] = origins
        return origins

    def _merged(self, source: Change, change: Change, step: FileStep, old: Origins) -> Origins:
        was = self._lines(source.before, source.path)
        if len(was) != len(old):
            raise _contradiction(source.path)
        now = self._lines(change.after, change.path)
        first = _origins(was, now, old, step)
        # Compare a second time, from the end: among equal lines that are next to each other, this pairs different ones.
        last = _origins(was[::-1], now[::-1], old[::-1], step)[::-1]
        return [a if a is b else _joined(a, b) for a, b in zip(first, last, strict=True)]

    def _change(self, path: bytes, place: int) -> tuple[int, Change | None]:
        """Return the last change of a file in the first `place` steps, and how many steps came before it."""
        for before in range(place - 1, -1, -1):
            for change in self._steps[before].effect.changes:
                if change.path == path:
                    return before, change
        return 0, None

    def _first(self, path: bytes, name: str, before: int) -> int | None:
        """Return the number of steps, before this one, after which the file had exactly this content. None: it never
        had.
        """
        start = self._history.start(self._number).get(path)
        if start is not None and start.id == name:
            return 0
        for place in range(before):
            for change in self._steps[place].effect.changes:
                if change.path == path and change.after is not None and change.after.id == name:
                    return place + 1
        return None

    def _replacement(self, step: FileStep, change: Change) -> Change | None:
        """Return the change by which another file left its path, if it replaced an existing one: `mv new.py app.py`,
        or two files that have exchanged their names. Only a file with exactly this content counts.
        """
        if change.before is None or change.after is None:
            return None
        for other in step.effect.changes:
            was, now = other.before, other.after
            if other.path == change.path or was is None or was.same_as(now):
                continue
            # Content may be known as an object of git under one path and as a blob under the other.
            is_alike = was.is_file and was.is_stored and was.size == change.after.size
            if is_alike and self._history.content(was, self._number) == self._history.content(
                change.after, self._number
            ):
                return other
        return None

    def _source(self, step: FileStep, change: Change) -> Change | None:
        """Return the change by which a moved file left its old path: a file with mostly the same lines, deleted in
        this step.
        """
        now = Counter(self._lines(change.after, change.path))
        best, most = None, _ALIKE
        for other in step.effect.changes:
            if other.after is not None or other.before is None or not other.before.is_file:
                continue
            was = text_of(self._history, other.before, self._number)
            if was is None:
                continue
            lines = Counter(was.splitlines())
            alike = (now & lines).total() / max(1, now.total(), lines.total())
            if alike >= most:
                best, most = other, alike
        return best

    def _lines(self, entry: FileEntry | None, path: bytes) -> list[str]:
        if entry is not None and entry.is_folder:
            raise UsageError(f"{shown(path)} is a folder; name a file.")
        text = text_of(self._history, entry, self._number)
        if text is None:
            why = "binary" if entry is not None and entry.is_stored else "not on the tape"
            raise UsageError(f"{shown(path)} is {why}: there are no lines to attribute.")
        return text.splitlines()


def _contradiction(path: bytes) -> TapeDamaged:
    return TapeDamaged(
        f"The tape contradicts itself: a step changed {shown(path)}, but the file that it changed was not there, or "
        "had other lines. Without the whole history, no line can be attributed."
    )


def _origins(was: list[str], now: list[str], old: Origins, step: FileStep) -> Origins:
    new: Candidates = (step,)
    found: Origins = []
    for tag, i, j, k, m in opcodes(was, now):
        found += old[i:j] if tag == "equal" else [new] * (m - k)
    return found


def _joined(first: Candidates, last: Candidates) -> Candidates:
    """Join both, with each step once. Compared by identity: equal steps are the same object."""
    return (*first, *(one for one in last if not any(one is other for other in first)))
