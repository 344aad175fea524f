"""The file changes of a run as JSON. Knows the shape; reads content only to count lines."""

from __future__ import annotations

from typing import Any

from playhead.story import Story
from playhead.story.blame_across import AcrossLine
from playhead.story.file_steps import CountedChange, FileStep, LineCount, count_lines, prompt_of
from playhead.story.line_origins import BlamedLine
from playhead.story.tree_difference import TreeDifference
from playhead.workspace.history import FileHistory
from playhead.workspace.tree_listing import Change, FileEntry, shown


def files_json(
    story: Story, history: FileHistory, steps: list[FileStep], *, everything: bool
) -> dict[str, Any]:
    return {
        "run": story.manifest.run,
        "workspaces": [dict(one.facts) for one in history.starts],
        "gaps": history.gaps,
        "steps": [
            made
            for step in steps
            if (made := _step(history, step, everything=everything))["changes"]
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


def files_json_of(changes: list[CountedChange]) -> list[dict[str, Any]]:
    return [_change(one.change, one.lines) for one in changes]


def trees_json(difference: TreeDifference) -> dict[str, Any]:
    return {
        "same": difference.same,
        "why": difference.why,
        "changes": files_json_of(list(difference.changes)),
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


def _step(history: FileHistory, step: FileStep, *, everything: bool) -> dict[str, Any]:
    workspace = step.effect.workspace
    return {
        "step": step.number,
        "calls": [one.number for one in step.calls],
        "between_calls": not step.calls,
        "llm": None if step.llm is None else step.llm.number,
        "workspace": workspace,
        "gaps": step.effect.gaps,
        "changes": [
            change_json(history, one, workspace)
            for one in step.effect.changes
            if everything or not one.path.startswith(b".git/")
        ],
    }


def _entry(entry: FileEntry | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    return {"mode": f"{entry.mode:o}", "size": entry.size, "id": entry.id}
