"""Snapshot SQLite files before the program can change them. Knows SQLite's files on disk; does not know their
contents: queries run again in a replay, from the same start.

Python announces every connection with an audit event before the file is touched, whichever library opens it
(sqlite3, aiosqlite, SQLAlchemy, LangGraph's SqliteSaver). An audit hook cannot be removed, so there is one
per process, and it looks up the active deck.
"""

from __future__ import annotations

import os
import sys
import weakref
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from playhead import events
from playhead.encoding.values import safe_str
from playhead.hooks.guest import Patches
from playhead.recording import deck, where
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder

LARGEST = 32 * 1024 * 1024

# The main file, and the files that SQLite keeps beside it: without these the last transactions are missing.
_SUFFIXES = ("", "-wal", "-journal")

_listening = False
_seen: weakref.WeakKeyDictionary[Recorder, set[str]] = weakref.WeakKeyDictionary()


def hook(module: ModuleType, patches: Patches) -> None:
    global _listening  # noqa: PLW0603  as lasting as the audit hook itself
    if not _listening:
        _listening = True
        sys.addaudithook(_heard)


def _heard(event: str, args: tuple[Any, ...]) -> None:
    if event != "sqlite3.connect":
        return
    open_deck = deck.active()
    if open_deck is None:
        return
    try:
        _connecting(open_deck.recorder, args[0])
    except Exception as error:  # noqa: BLE001  raising here would forbid the connection
        open_deck.recorder.warn(f"a SQLite file could not be read ({safe_str(error)}).")


def _connecting(recorder: Recorder, database: Any) -> None:
    path = path_of(database)
    if path is None or _is_ours(recorder, path):
        return
    seen = _seen.setdefault(recorder, set())
    if path in seen:
        return
    seen.add(path)
    _snapshot(recorder, path, "start")
    recorder.last_words.append(lambda: _snapshot(recorder, path, "end"))


def path_of(database: Any) -> str | None:
    """Return the path of the database; None if it has none (in memory, or a temporary database)."""
    try:
        name = os.fsdecode(database)
    except TypeError:  # not a name: sqlite3 will say so itself
        return None
    if name in ("", ":memory:"):
        return None
    if name.startswith("file:") and not os.path.exists(name):
        parts = urlsplit(name)
        if "memory" in parse_qs(parts.query).get("mode", ()) or parts.path in ("", ":memory:"):
            return None
        name = unquote(parts.path)
    return os.path.abspath(name)


def _is_ours(recorder: Recorder, path: str) -> bool:
    runs = os.path.abspath(recorder.run.parent)
    return path.startswith(runs + os.sep) or path == os.path.join(
        os.path.dirname(runs), "library.db"
    )


def _snapshot(recorder: Recorder, path: str, when: str) -> None:
    name = f"sqlite:{where.shown(path)}"
    sizes = {suffix: _size(path + suffix) for suffix in _SUFFIXES}
    size = sum(found for found in sizes.values() if found is not None)
    if size > LARGEST:
        why = f"{size} bytes; files up to {LARGEST} are copied"
        recorder.append(NewEvent(events.HOLE, {"boundary": "state", "what": name, "why": why}))
        return
    files = {
        suffix or "main": _read(path + suffix)
        for suffix, found in sizes.items()
        if found is not None
    }
    data = {"store": name, "when": when, "path": path, "bytes": size, "value": files}
    recorder.append(NewEvent(events.SNAPSHOT, data, where.asked(2)))


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
