"""Compare the files that two runs left behind. Pure but for reading recorded content."""

from __future__ import annotations

from dataclasses import dataclass

from playhead.errors import PlayheadError
from playhead.story.files.file_steps import CountedChange, as_text, line_count, unified_patch
from playhead.workspace.history import FileHistory
from playhead.workspace.tree_listing import Change, FileEntry, between

_GIT = b".git/"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDifference:
    """The changes from the files of the left run to those of the right one. `why`: they cannot be compared."""

    changes: tuple[CountedChange, ...] = ()
    patches: tuple[str, ...] = ()
    why: str | None = None

    @property
    def same(self) -> bool | None:
        return None if self.why is not None else not self.changes


def tree_difference(
    left: FileHistory, right: FileHistory, *, patches: bool = False
) -> TreeDifference:
    """Compare the first workspaces at the end of both runs; files below `.git` do not count."""
    try:
        pairs = between(left.at(None), right.at(None))
        found = [one for one in pairs if _counts(one) and not _is_same(one, left, right)]
        changes = tuple(
            CountedChange(
                change=one,
                lines=line_count(
                    as_text(one.before, left.content), as_text(one.after, right.content)
                ),
            )
            for one in found
        )
        texts = (
            tuple(unified_patch(one, left.content, right.content) for one in found)
            if patches
            else ()
        )
    except PlayheadError as error:
        return TreeDifference(why=str(error))
    return TreeDifference(changes=changes, patches=texts)


def _counts(change: Change) -> bool:
    return not (change.path + b"/").startswith(_GIT)


def _is_same(change: Change, left: FileHistory, right: FileHistory) -> bool:
    """Return whether two entries are the same. A content may be an object of git in one run and a blob in the other."""
    before, after = change.before, change.after
    if before is None or after is None or before.mode != after.mode:
        return False
    if before.size != after.size or not (_is_stored_file(before) and _is_stored_file(after)):
        return False
    return left.content(before) == right.content(after)


def _is_stored_file(entry: FileEntry) -> bool:
    return entry.is_file and entry.is_stored
