"""Announce files that the program is about to write to the process that watches the workspaces.

A file outside the workspaces is copied before the program can change it: a replay runs the program's own code
again, and must find the file as the recording found it. From then on it is watched like a workspace, so that a
replay also makes the changes of calls that it serves.

A file in a workspace that the program's own code changes is announced, too. Otherwise the change would count as the
change of a call that another thread or process has open at the time, and a replay would make it twice.

A file outside the workspaces that only a subprocess has written is found when the program opens it for reading: if it
changed during a call of the run, it is copied then, and counts as changed by that call.

Python announces opened, moved and deleted files by audit events, before they are touched. Files that native libraries
open (DuckDB, FAISS) are not announced: they are recorded if they are in a workspace. An audit hook cannot be removed,
so there is one per process, and it looks up the active deck.
"""

from __future__ import annotations

import os
import stat
import sys

from playhead import events
from playhead.encoding.values import freeze, safe_str
from playhead.host.cache_folder import exchange_folder
from playhead.host.later import Later
from playhead.recording import deck, where
from playhead.recording.encoder import NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from playhead.hooks.state import sqlite_files
    from playhead.recording.deck import Deck
    from playhead.recording.recorder import Recorder
    from playhead.workspace import chosen_files
    from playhead.workspace.watch import call_marks
    from playhead.workspace.watch.call_marks import CallMarks
else:
    call_marks = Later("playhead.workspace.watch.call_marks")
    sqlite_files = Later("playhead.hooks.state.sqlite_files")
    chosen_files = Later("playhead.workspace.chosen_files")  # for a file that is copied

LARGEST = 32 * 1024 * 1024
# How many files outside the workspaces are copied. More are a cache or a download, which a replay does not need.
_MOST = 500
_MOST_BYTES = 64 * 1024 * 1024
# Devices and kernel interfaces; byte code, which Python rebuilds.
_SKIPPED_STARTS = ("/dev/", "/proc/", "/sys/")
_SIDE_FILES = ("-wal", "-journal")
_SKIPPED_ENDS = (".pyc", "-shm", *_SIDE_FILES)

# Where agents and clients keep their sign-in, beside the names that count in a workspace.
_CREDENTIALS = frozenset(
    {"auth.json", ".credentials.json", "token.json", "oauth_creds.json", "hosts.yml"}
)

# Folders that the program has made, by a function that always makes a new one: they hold no earlier content.
new_folders: set[str] = set()

# What Python itself reads.
_MODULES = (".py", ".pyc", ".so")

_listening = False
_seen: set[str] = set()
# The files that the watcher has looked at because the program read them, with the time of their last change.
_read: dict[str, int] = {}
_bytes = 0


def begin(marks: CallMarks) -> None:
    """Watch this process from now on. Idempotent."""
    global _listening, _bytes  # noqa: PLW0603  as lasting as the audit hook itself
    _seen.clear()
    _read.clear()
    new_folders.clear()
    _bytes = 0
    if not _listening:
        _listening = True
        sys.addaudithook(_hear)
    _announce_output(marks)


def _announce_output(marks: CallMarks) -> None:
    """Announce the files that are stdout and stderr (`python agent.py > log &`): the shell has opened them, so no audit
    event comes. Otherwise the output would count as the change of a call that another Python has open.
    """
    for path in {_file_of(fd) for fd in (1, 2)} - {None}:
        marks.note_own(str(path))


def _file_of(fd: int) -> str | None:
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None


# Audit events about a change of files: which of their arguments are paths that change, and which one is the descriptor
# of the folder that a relative path starts from.
_CHANGES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "open": ((0, None),),
    "os.rename": ((0, 2), (1, 3)),
    "os.remove": ((0, 1),),
    "os.truncate": ((0, None),),
    "os.mkdir": ((0, 2),),
    "os.rmdir": ((0, 1),),
    "os.symlink": ((1, 2),),
    "os.link": ((1, 3),),
    "os.chmod": ((0, 2),),
    "sqlite3.connect": ((0, None),),
}


def _hear(event: str, args: tuple[Any, ...]) -> None:
    # This runs for every audit event of the process, so events that do not change a file return at once.
    if event == "open":
        if not args[2] & (os.O_WRONLY | os.O_RDWR):
            _reading(args[0])
            return
        # A file that must be new has no content to keep.
        is_new = bool(args[2] & os.O_EXCL)
    elif event in _CHANGES:
        is_new = event == "os.mkdir"
    else:
        return
    current = deck.active()
    if current is None or current.marks is None or current.mode is not None:
        return
    try:
        for place, base in _CHANGES[event]:
            if event == "sqlite3.connect":
                _connecting(current, sqlite_files.path_of(args[place]))
            else:
                name = args[place] if base is None else _from_folder(args[place], args[base])
                _changing(current, event, name, is_new=is_new)
    except Exception as error:  # noqa: BLE001  raising here would forbid the open
        current.recorder.warn(
            f"a file could not be copied before it was written ({safe_str(error)})."
        )


def _reading(name: Any) -> None:
    """Let the watcher copy a file that is about to be read, if a call of this process may have written it."""
    current = deck.active()
    if current is None or current.marks is None or current.mode is not None:
        return
    if not isinstance(name, (str, bytes)) or os.fsdecode(name).endswith(_MODULES):
        return
    try:
        status = os.stat(name)
        marks, changed = current.marks, status.st_ctime_ns
        if not stat.S_ISREG(status.st_mode) or not marks.may_be_written_by_call(changed):
            return
        path = os.path.abspath(os.fsdecode(name))
        if _read.get(path) == changed or len(_read) >= _MOST:
            return
        _read[path] = changed
        store = os.path.dirname(os.path.dirname(current.recorder.folder)) + os.sep
        # A loop makes the files that it exchanges with its agent in every replay. Their content is on the tape.
        exchanged = exchange_folder(os.environ) + os.sep
        if status.st_size > LARGEST or path.startswith((*_SKIPPED_STARTS, store, exchanged)):
            return
        real = os.path.realpath(path)
        is_private = os.path.basename(path) in _CREDENTIALS
        if not (is_private or current.is_inside_owner or marks.covers(real)):
            marks.note_read(real)
    except (OSError, ValueError):
        return  # it does not exist: the program finds out


def _from_folder(name: Any, folder: int) -> Any:
    """Return the path of a name that is relative to an open folder. `shutil.rmtree` deletes by such names."""
    if folder < 0 or not isinstance(name, (str, bytes)):
        return name
    return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), os.fsdecode(name))


def _connecting(current: Deck, path: str | None) -> None:
    """Watch the changes of a database that is about to be opened. `sqlite_files` copies its content."""
    marks = current.marks
    if path is None or marks is None:
        return
    real = os.path.realpath(path)
    if path not in _seen and len(_seen) < _MOST and not marks.covers(real):
        _seen.add(path)
        for suffix in ("", *_SIDE_FILES):
            marks.note_outside(real + suffix)
    if not current.is_inside_owner:
        marks.note_own(real, call_marks.OWN_DATABASE)


def _changing(current: Deck, event: str, name: Any, *, is_new: bool) -> None:
    if not isinstance(name, (str, bytes)):
        return  # a descriptor that is open already
    recorder, marks = current.recorder, current.marks
    path = os.path.abspath(os.fsdecode(name))
    is_own = marks is not None and not current.is_inside_owner
    if marks is None or not (is_own or (path not in _seen and len(_seen) < _MOST)):
        return
    if path.startswith((*_SKIPPED_STARTS, f"{recorder.folder}{os.sep}")):
        return
    # Resolve the folder but not the name: a change of a link is not a change of its target.
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if path not in _seen and not path.endswith(_SKIPPED_ENDS):
        # First, so that the watcher knows the file when it gets the next mark.
        _keep(recorder, marks, path, is_new=is_new)
    if is_own:
        kind = call_marks.OWN_MOVE if event == "os.rename" else call_marks.OWN_AT_ONCE
        marks.note_own(real, call_marks.OWN if event == "open" else kind)


def _keep(recorder: Recorder, marks: CallMarks, path: str, *, is_new: bool) -> None:
    """Copy a file before it is written for the first time, unless it is new or belongs to Playhead."""
    if path.startswith(os.path.dirname(os.path.dirname(recorder.folder)) + os.sep):
        return  # Playhead's own store
    if f"{os.sep}playhead-{os.getuid()}{os.sep}" in path:
        return  # the lock and the status file of a loop (see `loop.state`): a replay has neither
    if new_folders and path.startswith(tuple(new_folders)):
        return
    _seen.add(path)
    if not is_new and not marks.covers(os.path.realpath(path)):
        _copy(recorder, marks, path)


def _copy(recorder: Recorder, marks: CallMarks, path: str) -> None:
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
    if not os.path.islink(path) and marks.note_outside(os.path.realpath(path)):
        return
    # The watcher is busy or gone, so this process writes the content to the tape.
    data = {"store": name, "when": "start", "path": path, "bytes": size, "value": value}
    # `redacted`: `_content` has found no secrets, and the file must be restored byte by byte.
    recorder.append(NewEvent(events.SNAPSHOT, freeze(data), where.asked(2), redacted=True))


def _content(recorder: Recorder, path: str, size: int) -> tuple[bytes | None, str]:
    """Return the content, or None and the reason why it must not be on the tape."""
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
