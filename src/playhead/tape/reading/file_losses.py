"""Count the file changes of a run that are not on its tape. Knows the members of `files` events; does not know files.

The recorder lets a call end before its large files are stored. It announces them first (`pending`), and says when
they are stored (`settled`). A recorder that was killed in between leaves only the announcement: these changes are
lost.
"""

from __future__ import annotations

from playhead.events import Event


class FileLosses:
    """The losses of one run. `add` takes its `files` events in the order of the tape."""

    __slots__ = ("_pending", "recorded")

    def __init__(self) -> None:
        # Changes that the recorder itself counted as lost.
        self.recorded = 0
        # Segment → the last announcement. Each part of a resumed run has its own segment.
        self._pending: dict[str, Event] = {}

    def add(self, event: Event) -> bool:
        """Count one event. Return whether it is about changes; announcements are not."""
        data = event.data if isinstance(event.data, dict) else {}
        self.recorded += _number(data.get("gaps"))
        if data.get("settled") is True:
            self._pending.pop(event.segment, None)
            return False
        if _number(data.get("pending")):
            self._pending[event.segment] = event
            return False
        return True

    def unsettled(self) -> list[tuple[Event, int]]:
        """Return the announcements of changes that were never stored, each with the number of changes."""
        return [(one, _number(one.data["pending"])) for one in self._pending.values()]

    @property
    def count(self) -> int:
        return self.recorded + sum(number for _, number in self.unsettled())


def _number(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
