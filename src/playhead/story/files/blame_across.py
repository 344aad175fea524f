"""Find the run and the step that wrote each line of a file. Pure but for reading recorded content.

Runs are taken from the first to the last. Lines that differ between the end of one run and the start of the
next were edited in between: no run wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from playhead.errors import PlayheadError
from playhead.story.files.file_steps import FileStep, opcodes
from playhead.story.files.line_origins import START, BlamedLine, LineOrigins, Origins
from playhead.workspace.history import FileHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """One run that had the file in its workspace `number`."""

    run: str
    history: FileHistory
    steps: list[FileStep]
    number: int

    def changes(self, path: bytes) -> bool:
        return any(
            one.path == path
            for effect in self.history.effects
            if effect.workspace == self.number
            for one in effect.changes
        )

    def has_at_end(self, path: bytes) -> bool:
        versions = [entry for _, entry in self.history.versions(path, self.number)]
        return versions[-1] is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossLine:
    """One line of the file. `run` is None where no run wrote it."""

    line: BlamedLine
    run: str | None


class BlameAcross:
    """Follows a file through runs of the same folder, first run first."""

    def __init__(self, runs: Sequence[RunFiles]) -> None:
        self._runs = [
            (one, LineOrigins(one.history, one.steps, one.number, earlier=self._before(place)))
            for place, one in enumerate(runs)
        ]
        # Keyed by identity: steps of different runs may be equal.
        self._run_of = {id(step): one.run for one in runs for step in one.steps}

    def blame(self, path: bytes, today: list[str] | None) -> list[AcrossLine]:
        """`today`: the current lines of the file. None: it does not exist, and the last version is used."""
        if today is None:
            lines = self._last(path)
        else:
            origins = self._before(len(self._runs))(path, today)
            lines = [
                BlamedLine(number=number, text=text, candidates=candidates)
                for number, (text, candidates) in enumerate(zip(today, origins, strict=True), 1)
            ]
        return [AcrossLine(line=one, run=self._run_of.get(id(one.step))) for one in lines]

    def _last(self, path: bytes) -> list[BlamedLine]:
        for files, origins in reversed(self._runs):
            if files.changes(path):
                return origins.blame(path)
        return []

    def _before(self, place: int) -> Callable[[bytes, list[str]], Origins]:
        """Return the origins of the lines as they were when the run at `place` started."""

        def origins_of(path: bytes, lines: list[str]) -> Origins:
            for files, origins in reversed(self._runs[:place]):
                if not files.changes(path):
                    continue
                if not files.has_at_end(path):
                    break  # that run deleted it: the next run has a new file
                try:
                    return _carried(origins.blame(path), lines)
                except PlayheadError:
                    break  # it was binary then, or is not on the tape
            return [START] * len(lines)

        return origins_of


def _carried(known: list[BlamedLine], lines: list[str]) -> Origins:
    found: Origins = []
    for tag, i, j, k, m in opcodes([one.text for one in known], lines):
        if tag == "equal":
            found += [one.candidates for one in known[i:j]]
        else:
            found += [START] * (m - k)
    return found
