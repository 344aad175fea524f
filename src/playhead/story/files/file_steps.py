"""The file changes of a run by step: which call made them, and which LLM response asked for that call.

Knows a story and the history of its files; not how they are shown. A step is a call, by its number.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from playhead.errors import PlayheadError, UsageError
from playhead.story.derived_tools import DERIVED
from playhead.story.shape import CallItem, Story
from playhead.workspace.history import FileEffect, FileHistory
from playhead.workspace.restore import Read
from playhead.workspace.tree_listing import Change, FileEntry

# Lines of larger files are not counted: no person reads such a file line by line.
LARGEST_TEXT = 2 * 1024 * 1024
_BINARY = 8_000
# Maximum number of pairs of equal lines in the differing part of two versions. Beyond it, common lines are not matched
# exactly.
_MOST_PAIRS = 5_000_000
# The time of a file may be this much too early: the kernel takes it from its last tick.
_TICK_NS = 10_000_000


# "not stored": a secret or an unreadable file; only its hash is on the tape. "missing": the store does not
# have the blob, because the tape came without its blobs or is damaged.
Content = Literal["text", "link", "folder", "binary", "too large", "not stored", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion:
    """A file at one moment. `text` is None unless `content` is "text" or "link" (then: its target)."""

    content: Content
    size: int
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStep:
    """Changes that belong together. One call in `calls` made them for certain, several share them; without any, the
    agent's own code made them, after call `after`. `llm` is the response that asked for them.
    """

    effect: FileEffect
    calls: tuple[CallItem, ...]
    after: CallItem | None
    llm: CallItem | None

    @property
    def number(self) -> int:
        """The step after which the workspace has these changes."""
        if self.calls:
            return max(one.number for one in self.calls)
        return 0 if self.after is None else self.after.number


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCount:
    """Added and removed lines; None for a binary file or one that is not on the tape."""

    added: int | None
    removed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedChange:
    """A changed file of a workspace, with its lines."""

    change: Change
    lines: LineCount
    workspace: int = 0


def file_steps(story: Story, history: FileHistory) -> list[FileStep]:
    calls = story.calls()
    by_ref = {one.ref: one for one in calls}
    models = [one for one in calls if one.boundary == "llm"]
    shown = (
        one for one in history.effects if one.changes or not one.touched or one.left_out or one.gaps
    )
    return [_step(effect, by_ref, models) for effect in shown]


def files_of_call(story: Story, history: FileHistory, call: CallItem) -> list[CountedChange]:
    """Return the files that changed while a call was open, with counted lines if their content is there."""
    found = []
    for step in file_steps(story, history):
        if call in step.calls:
            number = step.effect.workspace
            for change in step.effect.changes:
                try:
                    lines = count_lines(history, change, number)
                except PlayheadError:  # a tape without its blobs
                    lines = LineCount(added=None, removed=None)
                found.append(CountedChange(change=change, lines=lines, workspace=number))
    return found


def moment_after(story: Story, number: int) -> int | None:
    """Return the moment at which step `number` ended. None: the end of the run. Step 0 is the start of the run."""
    if number == 0:
        return 0
    call = story.call(number)
    if call is None:
        there = max((one.number for one in story.calls() if DERIVED not in one.facts), default=0)
        known = f"its steps are 0 (the start) to {there}" if there else "it has no calls"
        raise UsageError(f"There is no step {number} in run {story.manifest.run}: {known}.")
    return None if call.ended is None else call.ended.mono


def count_lines(history: FileHistory, change: Change, number: int = 0) -> LineCount:
    before = text_of(history, change.before, number)
    after = text_of(history, change.after, number)
    return line_count(before, after)


def line_count(before: str | None, after: str | None) -> LineCount:
    """Return the lines that differ between two versions. None: they are not text."""
    if before is None or after is None:
        return LineCount(added=None, removed=None)
    added = removed = 0
    for tag, i, j, k, m in opcodes(_terminated(before), _terminated(after)):
        if tag != "equal":
            removed += j - i
            added += m - k
    return LineCount(added=added, removed=removed)


def patch_of(history: FileHistory, change: Change, number: int = 0) -> str:
    """A unified diff of one file, as git writes it."""
    return unified_patch(change, lambda entry: history.content(entry, number))


def unified_patch(change: Change, read: Read, read_after: Read | None = None) -> str:
    """Return a unified diff of one file, as git writes it. `read` returns the content of its entries.

    `read_after` is for the second entry, if it is from another run.
    """
    name = _quoted(change.path)
    before, after = change.before, change.after
    lines = [f"diff --git a/{name} b/{name}"]
    if before is None and after is not None:
        lines.append(f"new file mode {after.mode:o}")
    elif after is None and before is not None:
        lines.append(f"deleted file mode {before.mode:o}")
    elif before is not None and after is not None and before.mode != after.mode:
        lines += [f"old mode {before.mode:o}", f"new mode {after.mode:o}"]
    old, new = as_text(before, read), as_text(after, read_after or read)
    if old is None or new is None:
        if before is None or after is None or before.id != after.id:
            lines.append(f"Binary files a/{name} and b/{name} differ")
        return "\n".join(lines) + "\n"
    names = (
        "/dev/null" if before is None else f"a/{name}",
        "/dev/null" if after is None else f"b/{name}",
    )
    body = difflib.unified_diff(_terminated(old), _terminated(new), *names)
    text = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in body
    )
    return "\n".join(lines) + "\n" + text


def text_of(history: FileHistory, entry: FileEntry | None, number: int = 0) -> str | None:
    """Return a file as text: empty if it does not exist, None if it is binary or not on the tape."""
    return as_text(entry, lambda one: history.content(one, number))


def as_text(entry: FileEntry | None, read: Read) -> str | None:
    """Return a file as text: empty if it does not exist, None if it is binary or not stored."""
    if entry is None or entry.is_folder:
        return ""
    if entry.is_link:
        return entry.target.decode("utf-8", "backslashreplace")
    if not entry.is_stored or entry.size > LARGEST_TEXT:
        return None
    return text_in(read(entry))


def text_in(content: bytes) -> str | None:
    """Return content as text. None: it is binary."""
    if b"\0" in content[:_BINARY]:
        return None
    return content.decode("utf-8", "backslashreplace")


def read_version(history: FileHistory, entry: FileEntry, workspace: int = 0) -> FileVersion:
    """Read a version. Never raises for content that cannot be shown: `content` says why."""
    if entry.is_folder:
        return FileVersion(content="folder", size=0)
    if entry.is_link:
        target = text_of(history, entry, workspace)
        return FileVersion(content="link", size=len(entry.target), text=target)
    if not entry.is_stored:
        return FileVersion(content="not stored", size=entry.size)
    if entry.size > LARGEST_TEXT:
        return FileVersion(content="too large", size=entry.size)
    try:
        text = text_of(history, entry, workspace)
    except PlayheadError:
        return FileVersion(content="missing", size=entry.size)
    return FileVersion(content="binary" if text is None else "text", size=entry.size, text=text)


def versions_of(history: FileHistory) -> Iterator[tuple[str, int, FileEntry]]:
    """Yield the id, workspace and entry of every version that a call of the run replaced or wrote.

    A view may read these versions and no others: an id in a request is not a key to the whole store.
    """
    for effect in history.effects:
        for change in effect.changes:
            for entry in (change.before, change.after):
                if entry is not None and not entry.is_folder:
                    yield entry.id, effect.workspace, entry


def opcodes(old: list[str], new: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Return the opcodes of difflib. Equal beginnings and ends are removed first, because difflib compares all
    pairs.
    """
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if start:
        yield "equal", 0, start, 0, start
    middle = old[start : len(old) - end], new[start : len(new) - end]
    # A tape from a stranger may hold 100,000 equal lines, and difflib would compare all pairs of them.
    repeated = Counter(middle[1])
    pairs = sum(repeated[line] for line in middle[0])
    matcher = difflib.SequenceMatcher(None, *middle, autojunk=pairs > _MOST_PAIRS)
    for tag, i, j, k, m in matcher.get_opcodes():
        yield tag, start + i, start + j, start + k, start + m
    if end:
        yield "equal", len(old) - end, len(old), len(new) - end, len(new)


def prompt_of(call: CallItem | None) -> str | None:
    """The user's last message with text before this LLM call."""
    if call is None or not call.llm:
        return None
    messages = call.llm[0].request.messages
    said = [one.text for one in messages if one.role == "user" and one.text.strip()]
    return said[-1].strip() if said else None


def _step(effect: FileEffect, by_ref: dict[str, CallItem], models: list[CallItem]) -> FileStep:
    calls = tuple(by_ref[ref] for ref in effect.calls if ref in by_ref)
    after = by_ref.get(effect.after or "")
    asked = [by_ref[one.cause] for one in calls if one.cause in by_ref]
    start = min((one.mono for one in calls), default=effect.until_ns)
    earlier = [one for one in models if one.ended is not None and one.ended.mono <= start]
    if not calls:
        after = _last_before(effect, after, by_ref.values())
    llm = asked[-1] if asked else (earlier[-1] if earlier else None)
    return FileStep(effect=effect, calls=calls, after=after, llm=llm)


def _last_before(
    effect: FileEffect, known: CallItem | None, calls: Iterable[CallItem]
) -> CallItem | None:
    """Return the call that ended last before changes of the agent's own code. The recorder of files names only calls
    that can change files (`known`); an LLM call may have ended since. The times of the changed files tell, unless they
    are older than `known`: a program may copy a file with its time.
    """
    ended = [
        one
        for one in calls
        if DERIVED not in one.facts and one.ended and one.ended.mono <= effect.until_ns
    ]
    written = max((one.after.mtime_ns for one in effect.changes if one.after), default=0)
    if known is not None:
        if written + _TICK_NS < _end_wall(known):
            return known
        ended = [one for one in ended if _end_wall(one) <= written + _TICK_NS]
    return max((*ended, *([known] if known else [])), key=lambda one: one.number, default=None)


def _end_wall(call: CallItem) -> int:
    return call.wall if call.ended is None else call.wall + call.ended.mono - call.mono


def _terminated(text: str) -> list[str]:
    """Return lines with their ends, as git splits them: a form feed or U+2028 does not end a line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _quoted(path: bytes) -> str:
    text = path.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else text.encode("unicode_escape").decode()
