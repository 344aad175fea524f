"""The JSON form of file changes: the one that `files --json`, `show --call --json`, the HTTP API and the page
use. Reads content only to count lines and to make patches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from playhead.errors import PlayheadError
from playhead.story import Story
from playhead.story.comparison.tree_difference import TreeDifference
from playhead.story.files.blame_across import AcrossLine
from playhead.story.files.file_steps import (
    CountedChange,
    FileStep,
    LineCount,
    count_lines,
    patch_of,
    prompt_of,
)
from playhead.story.files.line_origins import BlamedLine
from playhead.story.run_clock import offsets
from playhead.workspace.history import FileHistory
from playhead.workspace.tree_listing import Change, FileEntry, shown

_GIT = b".git/"
_NOT_COUNTED = LineCount(added=None, removed=None)


@dataclass(slots=True, kw_only=True)
class FileLimits:
    """How many changes a view may still list, count and read. Counts down: a tape may name a million files."""

    per_step: int
    changes: int
    counts: int
    bytes: int


def files_json(
    story: Story,
    history: FileHistory,
    steps: list[FileStep],
    *,
    everything: bool,
    limits: FileLimits | None = None,
) -> dict[str, Any]:
    """All changes by step. `everything`: list the files below `.git`, instead of counting them.

    `changes_left_out` is the number of changes beyond `limits`; lines of files beyond them are not counted.
    """
    offset_of = _clock(story)
    made = [_step(history, step, offset_of(step), everything, limits) for step in steps]
    return {
        "run": story.manifest.run,
        "workspaces": [dict(one.facts) for one in history.starts],
        "gaps": history.gaps,
        "changes_left_out": sum(one["changes_left_out"] for one in made),
        "steps": [
            one for one in made if one["changes"] or one["git_files"] or one["changes_left_out"]
        ],
    }


def blame_json(path: bytes, lines: list[BlamedLine]) -> dict[str, Any]:
    return {"path": shown(path), "lines": [_line(one) for one in lines]}


def blame_across_json(file: str, lines: list[AcrossLine]) -> dict[str, Any]:
    return {"path": file, "lines": [{**_line(one.line), "run": one.run} for one in lines]}


def _line(one: BlamedLine) -> dict[str, Any]:
    step = one.step
    return {
        "line": one.number,
        "text": one.text,
        "step": None if step is None else step.number,
        "certain": one.is_certain,
        "candidates": [None if s is None else s.number for s in one.candidates],
        "shared": step is not None and len(step.calls) > 1,
        "llm": None if step is None or step.llm is None else step.llm.number,
        "prompt": None if step is None else prompt_of(step.llm),
    }


def call_files_json(history: FileHistory, changes: list[CountedChange]) -> list[dict[str, Any]]:
    """The files that one call changed, each with its unified diff (None: its content is not in the store)."""
    return [{**_change(one.change, one.lines), "patch": _patch(history, one)} for one in changes]


def trees_json(difference: TreeDifference) -> dict[str, Any]:
    return {
        "same": difference.same,
        "why": difference.why,
        "changes": [_change(one.change, one.lines) for one in difference.changes],
        "patches": list(difference.patches),
    }


def change_json(history: FileHistory, change: Change, workspace: int) -> dict[str, Any]:
    return _change(change, count_lines(history, change, workspace))


def _change(change: Change, lines: LineCount) -> dict[str, Any]:
    return {
        "path": shown(change.path),
        "how": change.how,
        "added": lines.added,
        "removed": lines.removed,
        "before": _entry(change.before),
        "after": _entry(change.after),
    }


def _patch(history: FileHistory, one: CountedChange) -> str | None:
    try:
        return patch_of(history, one.change, one.workspace)
    except PlayheadError:
        return None


def _step(
    history: FileHistory,
    step: FileStep,
    offset: int,
    everything: bool,  # noqa: FBT001  private, always named by its position here
    limits: FileLimits | None,
) -> dict[str, Any]:
    effect = step.effect
    listed = [one for one in effect.changes if everything or not one.path.startswith(_GIT)]
    kept = listed if limits is None else listed[: min(limits.per_step, limits.changes)]
    if limits is not None:
        limits.changes -= len(kept)
    return {
        "ref": effect.ref,
        "step": step.number,
        "calls": [one.number for one in step.calls],
        "call_refs": [one.ref for one in step.calls],
        "between_calls": not step.calls,
        "after": None if step.after is None else step.after.number,
        "llm": None if step.llm is None else step.llm.number,
        "llm_ref": None if step.llm is None else step.llm.ref,
        # On the clock of the run, which starts with the agent.
        "at_us": max(0, effect.until_ns + offset) // 1000,
        "workspace": effect.workspace,
        "gaps": effect.gaps,
        "git_files": len(effect.changes) - len(listed),
        "changes_left_out": len(listed) - len(kept),
        "changes": [_change(one, _lines(history, one, effect.workspace, limits)) for one in kept],
    }


def _clock(story: Story) -> Callable[[FileStep], int]:
    """Return a function: nanoseconds to add to a step's monotonic time, so that the agent starts at 0.

    A resumed run has an offset for each part: that of the step's call, or of the call before it.
    """
    since = offsets(story)
    first = next(iter(since.values()), 0)

    def offset_of(step: FileStep) -> int:
        call = step.calls[0] if step.calls else step.after
        return first if call is None else since.get(call.ref, first)

    return offset_of


def _lines(
    history: FileHistory, change: Change, workspace: int, limits: FileLimits | None
) -> LineCount:
    if limits is not None:
        limits.counts -= 1
        limits.bytes -= sum(one.size for one in (change.before, change.after) if one is not None)
        if limits.counts < 0 or limits.bytes < 0:
            return _NOT_COUNTED
    try:
        return count_lines(history, change, workspace)
    except PlayheadError:  # a tape without its blobs
        return _NOT_COUNTED


def _entry(entry: FileEntry | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    return {"mode": f"{entry.mode:o}", "size": entry.size, "id": entry.id}
