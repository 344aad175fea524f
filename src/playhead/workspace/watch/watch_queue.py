"""The watched folders of one run, as one queue of file events. Knows which workspace a watch belongs to; does not know
what an event means.
"""

from __future__ import annotations

import os
from contextlib import suppress

from playhead.encoding.values import safe_str
from playhead.workspace.watch import call_marks as marks
from playhead.workspace.watch.call_log import CallLog
from playhead.workspace.watch.inotify import CREATE, FileEvent, Inotify, is_silent


class WatchQueue:
    """The watches of one run, including the one on its folder of marks."""

    def __init__(self, folder: bytes) -> None:
        self.marks = os.path.join(folder, os.fsencode(marks.FOLDER))
        os.mkdir(self.marks, 0o700)
        # The number of a watch → workspaces that have this folder: (number, path in it).
        self.places: dict[int, set[tuple[int, bytes]]] = {}
        # Folders that could not be watched: (number, path). Their mode may change.
        self.unreadable: set[tuple[int, bytes]] = set()
        self.why_scan: str | None = None
        self.events = Inotify()
        self.log = CallLog(self.marks)
        self._marks_watch = self.events.add(self.marks, CREATE)

    def is_mark(self, event: FileEvent) -> bool:
        return event.watch == self._marks_watch

    def watch(self, number: int, root: bytes, folder: bytes) -> None:
        """Watch a folder of a workspace. If that fails, changes are found by scanning."""
        if self.why_scan is not None:
            return
        try:
            watch = self.events.add(os.path.join(root, folder))
            self.places.setdefault(watch, set()).add((number, folder))
        except FileNotFoundError:
            return
        except PermissionError:
            self.unreadable.add((number, folder))
        except OSError as error:
            self.why_scan = safe_str(error)

    def check(self, root: bytes) -> None:
        if is_silent(root):
            self.why_scan = "the file system reports no changes"

    def drop(self, number: int) -> None:
        """Forget a workspace that could not be recorded: its watches stay, but their events are ignored."""
        for watch, places in list(self.places.items()):
            self.places[watch] = {one for one in places if one[0] != number}

    def forget(self, number: int, folder: bytes) -> None:
        """Forget a folder that was moved or deleted: events of its watches are ignored until it is found again."""
        prefix = folder + b"/"
        for watch, places in list(self.places.items()):
            gone = {
                (one, path)
                for one, path in places
                if one == number and (path == folder or path.startswith(prefix))
            }
            if gone:
                self.places[watch] = places - gone

    def close(self) -> None:
        self.events.close()
        self.log.close()
        with suppress(OSError):
            for name in os.listdir(self.marks):
                os.unlink(os.path.join(self.marks, name))
            os.rmdir(self.marks)
