"""File changes on a terminal: by step, as a patch, and line by line. Knows steps; not tapes."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from playhead.errors import PlayheadError
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
from playhead.views.text.console import console, width_of
from playhead.views.text.labels import heading
from playhead.views.text.safe import clean, one_line
from playhead.workspace.history import FileHistory
from playhead.workspace.tree_listing import Change, shown

_LETTERS = {"added": "A", "deleted": "D", "modified": "M", "mode": "m"}
_GIT = b".git/"
_PATCH_STYLES = {"+": "ok", "-": "failed", "@": "llm", "\\": "quiet"}
# Lines of a file's diff that `show --call` prints: a screen.
_MOST_LINES = 40


def print_changes(history: FileHistory, steps: list[FileStep], *, everything: bool) -> None:
    out = console()
    width = width_of(out)
    total: set[bytes] = set()
    last: str | None = None
    for step in steps:
        rows = change_rows(history, step, everything=everything)
        if not rows:
            continue
        # A long call has several effects, and so has a call that changed several workspaces.
        title = step_title(step, width)
        if title.plain != last:
            out.print(title, no_wrap=True, overflow="crop")
        last = title.plain
        for row in rows:
            out.print(row, no_wrap=True, overflow="ellipsis")
        total |= {one.path for one in step.effect.changes if not one.path.startswith(_GIT)}
    out.print(Text(_summary(history, len(total)), style="quiet"))


def change_rows(history: FileHistory, step: FileStep, *, everything: bool) -> list[Text]:
    """Return one line per file; files below `.git` are counted in one line. Files that are not stored have a reason."""
    changes = step.effect.changes
    reasons = dict(step.effect.left_out)
    plain = [one for one in changes if everything or not (one.path + b"/").startswith(_GIT)]
    number = step.effect.workspace
    start = next((one for one in history.starts if one.number == number), None)
    # A single file outside the workspaces is shown with its whole path.
    folder = "" if start is None or start.only is None else start.root.rstrip("/") + "/"
    rows = [
        _row(one, count_lines(history, one, number), reasons.pop(shown(one.path), None), folder)
        for one in plain
    ]
    if len(changes) > len(plain):
        rows.append(Text(f"    .git: {len(changes) - len(plain):,} files", style="quiet"))
    rows += [
        Text.assemble(f"    ? {one_line(path, 200)}", (f" not stored ({why})", "quiet"))
        for path, why in reasons.items()
    ]
    return rows


def print_call_files(history: FileHistory, changes: list[CountedChange], *, full: bool) -> None:
    """Print the files that one call changed, with their diffs, below the output of `show --call`.

    `full`: print whole diffs instead of the first lines of each.
    """
    if not changes:
        return
    out = console()
    out.print()
    out.print(Text("Files", style="name"))
    plain = [one for one in changes if not one.change.path.startswith(_GIT)]
    for one in plain:
        out.print(_row(one.change, one.lines), no_wrap=True, overflow="ellipsis")
        for line in diff_lines(history, one, most=None if full else _MOST_LINES):
            out.print(Text.assemble("      ", line), soft_wrap=True)
    if len(changes) > len(plain):
        out.print(Text(f"    .git: {len(changes) - len(plain):,} files", style="quiet"))


def print_trees(difference: TreeDifference, *, patch: bool = False) -> None:
    """Below the comparison of two runs: the files that they left behind."""
    out = console()
    out.print()
    if difference.why is not None:
        out.print(Text(f"files: not compared. {difference.why}", style="quiet"), soft_wrap=True)
        return
    if difference.same:
        out.print(Text("files: both runs left the same files"))
        return
    count = len(difference.changes)
    out.print(Text(f"files: {count:,} differ{'s' if count == 1 else ''} at the end"))
    for one in difference.changes:
        out.print(_row(one.change, one.lines), no_wrap=True, overflow="ellipsis")
    if patch:
        for text in difference.patches:
            print_diff(text)


def diff_lines(history: FileHistory, one: CountedChange, *, most: int | None) -> Iterator[Text]:
    """Return the hunks of a changed file, coloured. Its names are left out, because they are printed above.

    `most` is the maximum number of lines; a last line says how many are missing.
    """
    try:
        patch = patch_of(history, one.change, one.workspace).split("\n")[:-1]
    except PlayheadError:
        yield Text("The store does not have the content of this file.", style="quiet")
        return
    hunks = next((at for at, line in enumerate(patch) if line.startswith("@@")), len(patch))
    body = patch[1:] if one.change.how == "mode" else patch[hunks:]
    for line in body if most is None else body[:most]:
        yield patch_line(line)
    if most is not None and len(body) > most:
        yield Text(f"… {len(body) - most:,} more lines (--full shows them)", style="quiet")


def patch_line(line: str) -> Text:
    """One line of a unified diff, coloured, with control characters made visible."""
    return Text(clean(line), style=_PATCH_STYLES.get(line[:1], ""))


def print_patch(history: FileHistory, steps: list[FileStep], *, everything: bool) -> None:
    for step in steps:
        for change in step.effect.changes:
            if everything or not change.path.startswith(_GIT):
                print_diff(patch_of(history, change, step.effect.workspace))


def print_diff(patch: str, *, stderr: bool = False) -> None:
    """A unified diff with its lines in colour."""
    out = console(stderr=stderr)
    for line in patch.split("\n")[:-1]:
        out.print(patch_line(line), soft_wrap=True)


def print_blame(lines: list[BlamedLine]) -> None:
    for one in lines:
        _print_line(one, _origins(one, "start"), 14)
    _print_steps({one.step.effect.ref: one.step for one in lines if one.step is not None})


def print_blame_across(lines: list[AcrossLine]) -> None:
    """Print like `print_blame`, with the run before its steps."""
    wide = max((len(one.run) for one in lines if one.run is not None), default=0)
    for one in lines:
        origin = _origins(one.line, "-") if one.run is None else _origins(one.line, "start")
        _print_line(one.line, f"{one.run or '':<{wide}} {origin}", wide + 15)
    for run in dict.fromkeys(one.run for one in lines if one.run is not None):
        steps = [one.line.step for one in lines if one.run == run and one.line.step is not None]
        console().print()
        console().print(Text(run, style="name"))
        _print_steps({one.effect.ref: one for one in steps})


def _print_line(line: BlamedLine, origin: str, wide: int) -> None:
    console().print(
        Text.assemble(
            (f"{origin:<{wide}}", "quiet" if line.step is None else "process"),
            (f"{line.number:>5}  ", "quiet"),
            clean(line.text),
        ),
        soft_wrap=True,
    )


def _print_steps(used: dict[str, FileStep]) -> None:
    out = console()
    width = width_of(out)
    if used:
        out.print()
    for step in sorted(used.values(), key=lambda one: one.number):
        out.print(step_title(step, width), no_wrap=True, overflow="crop")
        if step.llm is not None:
            out.print(
                Text.assemble("    asked for by ", heading(step.llm, width - 20)),
                no_wrap=True,
                overflow="crop",
            )
        if (prompt := prompt_of(step.llm)) is not None:
            out.print(Text(f"    prompt: {one_line(prompt, width - 14)}", style="why"))


def _origins(line: BlamedLine, start: str) -> str:
    if line.is_certain:
        return start if line.step is None else _origin(line.step)
    return " or ".join(start if one is None else f"#{one.number}" for one in line.candidates)


def _origin(step: FileStep) -> str:
    mark = "~" if len(step.calls) > 1 else "" if step.calls else "+"
    model = "" if step.llm is None else f" llm #{step.llm.number}"
    return f"#{step.number}{mark}{model}"


def step_title(step: FileStep, width: int) -> Text:
    """Return which call, calls or code made the changes of a step."""
    if not step.calls:
        after = "before the first call" if step.after is None else f"after #{step.after.number}"
        return Text(f"{after}: the agent's own code", style="name")
    if len(step.calls) > 1:
        numbers = ", ".join(f"#{one.number}" for one in step.calls)
        return Text(f"{numbers} ran at the same time", style="name")
    return heading(step.calls[0], width)


def _row(change: Change, lines: LineCount, why: str | None = None, folder: str = "") -> Text:
    row = Text(f"    {_LETTERS[change.how]} {one_line(folder + shown(change.path), 200)}")
    if lines.added is None:
        is_stored = all(one is None or one.is_stored for one in (change.before, change.after))
        row.append(" binary" if is_stored else " not stored", "quiet")
        row.append(f" ({why})" if why and not is_stored else "", "quiet")
        return row
    if lines.added:
        row.append(f" +{lines.added:,}", "ok")
    if lines.removed:
        row.append(f" −{lines.removed:,}", "failed")
    return row


def _summary(history: FileHistory, files: int) -> str:
    left_out = sum(one.facts.get("left_out_count", 0) for one in history.starts)
    parts = [f"{files:,} file{'' if files == 1 else 's'} changed"]
    if left_out:
        parts.append(f"{left_out:,} left out of the snapshot")
    if history.gaps:
        parts.append(f"{history.gaps:,} changes not recorded")
    return " · ".join(parts)
