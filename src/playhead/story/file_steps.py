"""The file changes of a run by step: which call made them, and which LLM response asked for that call.

Knows a story and the history of its files; not how they are shown. A step is a call, by its number.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from playhead.errors import PlayheadError, UsageError
from playhead.story.shape import CallItem, Story
from playhead.workspace.history import FileEffect, FileHistory
from playhead.workspace.restore import Read
from playhead.workspace.tree_listing import Change, FileEntry

# Above, lines are not counted: a person does not read such a file by lines.
_LARGEST_TEXT = 2 * 1024 * 1024
_BINARY = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStep:
    """Changes that belong together. `calls`: one is certain, several share them, none: the agent's own
    code, after call `after`. `llm` is the response that asked for them.
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
    """A changed file, with its lines."""

    change: Change
    lines: LineCount


def file_steps(story: Story, history: FileHistory) -> list[FileStep]:
    calls = story.calls()
    by_ref = {one.ref: one for one in calls}
    models = [one for one in calls if one.boundary == "llm"]
    return [_step(effect, by_ref, models) for effect in history.effects]


def files_of_call(story: Story, history: FileHistory, call: CallItem) -> list[CountedChange]:
    """The files that changed while a call was open, with counted lines where their content is there."""
    found = []
    for step in file_steps(story, history):
        if call in step.calls:
            number = step.effect.workspace
            for change in step.effect.changes:
                try:
                    lines = count_lines(history, change, number)
                except PlayheadError:  # a tape without its blobs
                    lines = LineCount(added=None, removed=None)
                found.append(CountedChange(change=change, lines=lines))
    return found


def moment_after(story: Story, number: int) -> int | None:
    """The moment at which step `number` had ended; None: the end of the run. 0 is its start."""
    if number == 0:
        return 0
    call = story.call(number)
    if call is None:
        there = story.totals.calls
        known = f"its steps are 0 (the start) to {there}" if there else "it has no calls"
        raise UsageError(f"There is no step {number} in run {story.manifest.run}: {known}.")
    return None if call.ended is None else call.ended.mono


def count_lines(history: FileHistory, change: Change, number: int = 0) -> LineCount:
    before = text_of(history, change.before, number)
    after = text_of(history, change.after, number)
    return line_count(before, after)


def line_count(before: str | None, after: str | None) -> LineCount:
    """The lines that differ between two versions; None: not text."""
    if before is None or after is None:
        return LineCount(added=None, removed=None)
    added = removed = 0
    for tag, i, j, k, m in opcodes(before.splitlines(), after.splitlines()):
        if tag != "equal":
            removed += j - i
            added += m - k
    return LineCount(added=added, removed=removed)


def patch_of(history: FileHistory, change: Change, number: int = 0) -> str:
    """A unified diff of one file, as git writes it."""
    return unified_patch(change, lambda entry: history.content(entry, number))


def unified_patch(change: Change, read: Read, read_after: Read | None = None) -> str:
    """A unified diff of one file, as git writes it; `read` gives the content of its entries.

    `read_after`: of the second one, where that is from another run.
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
    body = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), *names
    )
    text = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in body
    )
    return "\n".join(lines) + "\n" + text


def text_of(history: FileHistory, entry: FileEntry | None, number: int = 0) -> str | None:
    """A file as text: empty where there is none, None where it is binary or not on the tape."""
    return as_text(entry, lambda one: history.content(one, number))


def as_text(entry: FileEntry | None, read: Read) -> str | None:
    """A file as text: empty where there is none, None where it is binary or not stored."""
    if entry is None or entry.is_folder:
        return ""
    if entry.is_link:
        return entry.target.decode("utf-8", "backslashreplace")
    if not entry.is_stored or entry.size > _LARGEST_TEXT:
        return None
    return text_in(read(entry))


def text_in(content: bytes) -> str | None:
    """Content as text; None: it is binary."""
    if b"\0" in content[:_BINARY]:
        return None
    return content.decode("utf-8", "backslashreplace")


def opcodes(old: list[str], new: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """What difflib says, with equal beginnings and ends taken off first: it compares all with all."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if start:
        yield "equal", 0, start, 0, start
    middle = old[start : len(old) - end], new[start : len(new) - end]
    matcher = difflib.SequenceMatcher(None, *middle, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        yield tag, start + i, start + j, start + k, start + m
    if end:
        yield "equal", len(old) - end, len(old), len(new) - end, len(new)


def prompt_of(call: CallItem | None) -> str | None:
    """What the user wanted when this LLM call was made: the last message of theirs with words."""
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
    if after is None and not calls:
        before = [one for one in by_ref.values() if one.ended and one.ended.mono <= start]
        after = max(before, key=lambda one: one.number, default=None)
    llm = asked[-1] if asked else (earlier[-1] if earlier else None)
    return FileStep(effect=effect, calls=calls, after=after, llm=llm)


def _quoted(path: bytes) -> str:
    text = path.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else text.encode("unicode_escape").decode()
