"""The comparison of a replay's files with the recorded ones. Data only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesReport:
    """The comparison of a replay's files with the recorded ones. `same` None: not compared, because of `why`."""

    same: bool | None = None
    why: str | None = None
    # Files that the recorded run changed.
    changed: int = 0
    # Changes of the recorded run that are not on its tape: the disk was full, or a file changed again too early.
    gaps: int = 0
    differing: tuple[str, ...] = ()
    # Source files of the program that differ from the recording.
    code: tuple[str, ...] = ()
    # Other files that differ on disk from both the start and the end of the recording. The replay did
    # not use them.
    unused_edits: tuple[str, ...] = ()
    # Files that differ from the recorded ones, whose content is not on the tape. The replay used the current files, and
    # the comparison leaves them out.
    not_restored: tuple[str, ...] = ()

    @property
    def detail(self) -> str | None:
        """Describe the first difference."""
        if self.same is not False:
            return None
        more = len(self.differing) - 1
        rest = f" (and {more:,} more)" if more > 0 else ""
        return f"Files differ from the recorded ones: {self.differing[0]}{rest}."
