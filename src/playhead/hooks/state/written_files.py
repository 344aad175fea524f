"""Files outside the workspace that a program opens for writing, copied before it can change them.

A replay runs the program's own code again, so it must find such a file as the recording found it. Python
announces every open file by an audit event, before it is opened. Files that native libraries open
(DuckDB, FAISS) are not announced: they are recorded if they are in a workspace.

An audit hook cannot be removed, so there is one a process, and it asks for the active deck.
"""

from __future__ import annotations

import os
import sys

from playhead import events
from playhead.encoding.values import freeze, safe_str
from playhead.host.later import Later
from playhead.recording import deck, lanes, where
from playhead.recording.encoder import NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from playhead.recording.recorder import Recorder
    from playhead.workspace import chosen_files
    from playhead.workspace.watch.call_marks import CallMarks
else:
    chosen_files = Later("playhead.workspace.chosen_files")  # for a file that is copied

LARGEST = 32 * 1024 * 1024
# A program that writes more files than this elsewhere (a cache, a download) is not replayed by them.
_MOST = 500
_MOST_BYTES = 64 * 1024 * 1024
# Devices and kernel interfaces; byte code, which Python rebuilds.
_SKIPPED_STARTS = ("/dev/", "/proc/", "/sys/")
_SKIPPED_ENDS = (".pyc", "-wal", "-shm", "-journal")

# Where agents and clients keep their sign-in, beside the names that count in a workspace.
_CREDENTIALS = frozenset(
    {"auth.json", ".credentials.json", "token.json", "oauth_creds.json", "hosts.yml"}
)

# Audit events of changes, and which of their arguments are the changed paths.
_CHANGES = {
    "open": slice(1),
    "os.rename": slice(2),
    "os.remove": slice(1),
    "os.mkdir": slice(1),
    "os.rmdir": slice(1),
    "os.truncate": slice(1),
    "os.chmod": slice(1),
    "os.link": slice(1, 2),
    "os.symlink": slice(1, 2),
    "sqlite3.connect": slice(1),
}

_listening = False
_seen: set[str] = set()
_bytes = 0


def begin() -> None:
    """Watch this process from now on. Idempotent."""
    global _listening, _bytes  # noqa: PLW0603  as lasting as the audit hook itself
    _seen.clear()
    _bytes = 0
    if not _listening:
        _listening = True
        sys.addaudithook(_hear)


def _hear(event: str, args: tuple[Any, ...]) -> None:
    # This runs for every audit event of the process: anything but a change of a file leaves here.
    paths = _CHANGES.get(event)
    if paths is None or (event == "open" and not args[2] & (os.O_WRONLY | os.O_RDWR)):
        return
    current = deck.active()
    if current is None or current.marks is None or current.mode is not None:
        return
    if current.marks.running:
        _note_own(current, args[paths])
    if event != "open":
        return
    # A file that must be new has no content to keep.
    if args[2] & os.O_EXCL or len(_seen) >= _MOST:
        return
    try:
        _opening(current.recorder, current.marks, args[0])
    except Exception as error:  # noqa: BLE001  raising here would forbid the open
        current.recorder.warn(
            f"a file could not be copied before it was written ({safe_str(error)})."
        )


def _note_own(current: deck.Deck, names: tuple[Any, ...]) -> None:
    """The program's own code changes files while subprocesses run: see `CallMarks.own`."""
    marks, around = current.marks, lanes.inside.get()
    store = os.path.dirname(os.path.dirname(current.recorder.folder)) + os.sep
    for name in names:
        if marks is not None and isinstance(name, (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(name))
            # Marks are links in the store: without this check each mark would make another one.
            if not path.startswith(store):
                marks.own(path, around)


def _opening(recorder: Recorder, marks: CallMarks, name: Any) -> None:
    if not isinstance(name, (str, bytes)):
        return  # a descriptor that is open already
    path = os.path.abspath(os.fsdecode(name))
    if path in _seen or path.startswith(_SKIPPED_STARTS) or path.endswith(_SKIPPED_ENDS):
        return
    if path.startswith(os.path.dirname(os.path.dirname(recorder.folder)) + os.sep):
        return  # Playhead's own store
    _seen.add(path)
    if not marks.covers(os.path.realpath(path)):
        _copy(recorder, path)


def _copy(recorder: Recorder, path: str) -> None:
    global _bytes  # noqa: PLW0603  one count a process
    name = f"file:{where.shown(path)}"
    size, value = 0, {}
    if os.path.lexists(path):
        if not os.path.isfile(path):
            return  # a pipe, a terminal
        size = os.stat(path).st_size
        content, why = _content(recorder, path, size)
        if content is None:
            recorder.append(NewEvent(events.HOLE, {"boundary": "state", "what": name, "why": why}))
            return
        value = {"main": content}
    _bytes += size
    data = {"store": name, "when": "start", "path": path, "bytes": size, "value": value}
    # Looked through already, and to be restored byte by byte.
    recorder.append(NewEvent(events.SNAPSHOT, freeze(data), where.asked(2), redacted=True))


def _content(recorder: Recorder, path: str, size: int) -> tuple[bytes | None, str]:
    """The content, or None and the reason why it must not be on the tape."""
    if size > LARGEST or _bytes + size > _MOST_BYTES:
        return None, f"{size} bytes; files up to {LARGEST}, {_MOST_BYTES} in all, are copied"
    base = os.path.basename(path)
    if base in _CREDENTIALS or chosen_files.is_secret(os.fsencode(path)):
        return None, "it is named like a file with secrets"
    with open(path, "rb") as file:
        content = file.read()
    if recorder.redactor is not None and recorder.redactor.secrets_in(content):
        return None, "it contains a secret"
    return content, ""
