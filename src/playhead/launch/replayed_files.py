"""The workspace of a replay, inside its fence: the recorded files over those that are there now.

Knows the fence's folders and the history of a tape; not how files are restored.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from playhead.encoding.values import safe_str
from playhead.errors import PlayheadError
from playhead.recording.recorder import Recorder
from playhead.replay.fence.barrier import Fence
from playhead.tape.reader import Tape
from playhead.workspace.files_report import FilesReport
from playhead.workspace.history import read_history
from playhead.workspace.program_files import program_files
from playhead.workspace.scratch_workspace import EffectServer, ScratchWorkspace


class ReplayedFiles:
    """Serves file changes from `start` to `stop`; then `report` compares."""

    def __init__(self, server: EffectServer, folders: list[int]) -> None:
        self._server = server
        self._folders = folders
        self.report: FilesReport | None = None

    def start(self, recorder: Recorder) -> None:
        self._server.start(recorder)

    def stop(self) -> None:
        try:
            self._server.stop()
            found = self._server.reports
            self.report = next((one for one in found if one.same is not True), found[0])
        except (OSError, PlayheadError) as error:
            self.report = FilesReport(why=safe_str(error))
        for fd in self._folders:
            os.close(fd)


def replayed_files(
    tape: Tape, home: Path, command: Sequence[str], fence: Fence, run: Path
) -> ReplayedFiles | None:
    """Restore the workspaces of a tape inside the fence. None: it has none, or they cannot be had.

    `home` is the store with their content, `run` the folder of the replay.
    """
    if fence.kind != "namespaces":
        return None
    folders: list[int] = []
    try:
        history = read_history(tape, home)
        spaces = []
        for start in history.starts:
            if not start.tree:
                continue
            folders.append(fence.open_folder(start.root))
            folder = f"/proc/self/fd/{folders[-1]}"
            known = history.start(start.number)
            code = program_files(command, start.root, tape.manifest.cwd, known, folder)
            space = ScratchWorkspace(
                history,
                folder,
                excluded=_inside(start.root, home, run.parent.parent),
                code=frozenset(code),
                number=start.number,
            )
            space.prepare()
            spaces.append(space)
        return ReplayedFiles(EffectServer(str(run), spaces), folders) if spaces else None
    except (OSError, PlayheadError):
        for fd in folders:
            os.close(fd)
        return None  # a tape without its blobs: it replays with the files that are there


def _inside(root: str, *stores: Path) -> tuple[bytes, ...]:
    """Stores in the workspace, relative to it."""
    found = {os.path.realpath(one) for one in stores}
    return tuple(
        os.fsencode(os.path.relpath(one, root)) for one in found if one.startswith(root + "/")
    )
