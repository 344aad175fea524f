"""The lines of the Files screen: the changed files as of a step, and one of them as a diff. Reads blobs.

A position counts changes: 0 is the start of the run, n is after its nth change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.text import Text

from playhead.errors import PlayheadError
from playhead.story import CallItem, Item, Story
from playhead.story.files.file_steps import FileStep, file_steps, line_count, patch_of, read_version
from playhead.views.text import words
from playhead.views.text.file_changes import step_title
from playhead.views.text.labels import heading
from playhead.views.text.safe import one_line
from playhead.views.tui.widgets import folded
from playhead.workspace.history import FileHistory
from playhead.workspace.tree_listing import Change, FileEntry, shown

# What a file is compared with: its version before this step, its version at the start, nothing.
FileView = Literal["this step", "since start", "whole file"]
VIEWS: tuple[FileView, ...] = ("this step", "since start", "whole file")
_LETTERS = {"added": "A", "deleted": "D", "modified": "M", "mode": "m", "restored": "="}
_STYLES = {"added": "ok", "deleted": "failed", "modified": "interrupted", "mode": "interrupted"}
_GIT = b".git/"
_LONGEST = 20_000
_NOT_SHOWN = {
    "binary": "A binary file.",
    "too large": "This file is too large to be shown as text.",
    "not stored": "Its content is not on the tape: named like a secret, containing one, or unreadable.",
    "missing": "The store does not have this version.",
    "folder": "A folder.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file as of a position. `start`: its entry at the start of the run; `change`: its last change."""

    workspace: int
    change: Change
    start: FileEntry | None
    is_now: bool

    @property
    def how(self) -> str:
        """Return how the file differs from the start of the run."""
        now = self.change.after
        if self.start is None and now is None:
            return "restored"
        if self.start is not None and self.start.same_as(now):
            return "restored"
        return Change(self.change.path, self.start, now).how

    def compared(self, view: FileView) -> Change:
        if view == "since start":
            return Change(self.change.path, self.start, self.change.after)
        return self.change


class FileTravel:
    """The changes of a run in order."""

    def __init__(self, story: Story, history: FileHistory) -> None:
        self.story = story
        self.history = history
        self.steps = sorted(file_steps(story, history), key=lambda one: one.effect.until_ns)
        self._first = min((item.mono for item in story.items.values()), default=0)

    @property
    def last(self) -> int:
        return len(self.steps)

    def position_of(self, item: Item | None) -> int:
        """The position after an item: after its own change, else after all changes until its end."""
        if item is None:
            return self.last
        own = [at for at, step in enumerate(self.steps, 1) if item in step.calls]
        if own:
            return own[-1]
        ended = item.ended.mono if isinstance(item, CallItem) and item.ended else item.mono
        return bisect_right([step.effect.until_ns for step in self.steps], ended)

    def files(self, position: int) -> list[ChangedFile]:
        """The files that changed up to a position, by path. Those below `.git` do not count."""
        found: dict[tuple[int, bytes], ChangedFile] = {}
        for at, step in enumerate(self.steps[:position], 1):
            number = step.effect.workspace
            for change in step.effect.changes:
                if change.path.startswith(_GIT):
                    continue
                known = found.get((number, change.path))
                found[number, change.path] = ChangedFile(
                    workspace=number,
                    change=change,
                    start=change.before if known is None else known.start,
                    is_now=at == position,
                )
        return [found[key] for key in sorted(found)]

    def head(self, position: int, width: int) -> list[Text]:
        """Two lines: which step made the change, and which LLM response asked for it."""
        count = f"change {position:,} of {self.last:,}"
        if position == 0:
            return [Text("The files as the run found them.", style="name"), Text(count, "quiet")]
        step = self.steps[position - 1]
        at = words.position(max(0, step.effect.until_ns - self._first))
        facts = [count, f"at {at}", *_facts(step)]
        line = Text(" · ".join(facts), style="quiet")
        if step.llm is not None and step.calls:
            line.append(" · asked for by ")
            line.append_text(heading(step.llm, max(20, width - line.cell_len)))
        return [step_title(step, width), line]

    def row(self, file: ChangedFile, width: int) -> Text:
        """`M src/server.py +1 −1`; the counts are those of this step."""
        folder, _, name = shown(file.change.path).rpartition("/")
        row = Text(f"{_LETTERS[file.how]} ", style=_STYLES.get(file.how, "quiet"))
        row.append(one_line(f"{folder}/", 200) if folder else "", "quiet")
        row.append(one_line(name, 200), "name" if file.is_now else "asked")
        if file.is_now:
            row.append_text(self._counts(file))
        row.truncate(width, overflow="ellipsis")
        return row

    def _counts(self, file: ChangedFile) -> Text:
        try:
            texts = [
                "" if one is None else read_version(self.history, one, file.workspace).text
                for one in (file.change.before, file.change.after)
            ]
        except PlayheadError:
            return Text()
        lines = line_count(*texts)
        counts = Text()
        if lines.added:
            counts.append(f" +{lines.added:,}", "ok")
        if lines.removed:
            counts.append(f" −{lines.removed:,}", "failed")
        return counts

    def diff(self, file: ChangedFile, view: FileView, width: int) -> Sequence[Text]:
        """One file, in lines of at most `width` columns."""
        lines = list(self._diff(file, view, width))
        if len(lines) <= _LONGEST:
            return lines
        return [*lines[:_LONGEST], Text(f"… {len(lines) - _LONGEST:,} more lines", style="quiet")]

    def _diff(self, file: ChangedFile, view: FileView, width: int) -> Iterator[Text]:
        change = file.compared(view)
        for entry in (change.after, change.before if view != "whole file" else None):
            if entry is None:
                continue
            version = read_version(self.history, entry, file.workspace)
            if version.text is None:
                yield Text(_NOT_SHOWN[version.content])
                yield Text(words.size(version.size), style="quiet")
                return
        if view == "whole file":
            yield from self._whole(file, width)
            return
        if change.before is not None and change.after is not None:
            old, new = change.before.mode, change.after.mode
            if old != new:
                yield Text(f"mode {old & 0o777:o} → {new & 0o777:o}", style="quiet")
        patch = patch_of(self.history, change, file.workspace).split("\n")[:-1]
        hunks = next((at for at, line in enumerate(patch) if line.startswith("@@")), len(patch))
        for line in patch[hunks:]:
            yield from folded(line, width, style=_LINE_STYLES.get(line[:1], ""))

    def _whole(self, file: ChangedFile, width: int) -> Iterator[Text]:
        entry = file.change.after
        if entry is None:
            yield Text("There is no file.", style="quiet")
            return
        text = read_version(self.history, entry, file.workspace).text or ""
        lines = text.split("\n")
        room = len(str(len(lines)))
        for number, line in enumerate(lines[:-1] if not lines[-1] else lines, 1):
            first, *rest = folded(line, width - room - 2)
            yield Text.assemble((f"{number:>{room}}  ", "quiet"), first)
            yield from (Text.assemble(" " * (room + 2), one) for one in rest)


_LINE_STYLES = {"+": "ok", "-": "failed", "@": "llm", "\\": "quiet"}


def _facts(step: FileStep) -> Iterator[str]:
    below = sum(one.path.startswith(_GIT) for one in step.effect.changes)
    if below:
        yield f"{below:,} file{'' if below == 1 else 's'} below .git"
    if step.effect.gaps:
        yield f"{step.effect.gaps:,} change{'' if step.effect.gaps == 1 else 's'} not recorded"
