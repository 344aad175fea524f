"""Decide which open calls can have changed a file, by what the tape says about these calls. Pure.

`agent | tee log` is open as long as the agent is. An agent that is not Python does not announce the files that it
writes, so its own changes would count as changes by `tee`, and a replay would make them too early.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.workspace.tree_listing import Change

if TYPE_CHECKING:
    from playhead.workspace.history import FileEffect

# Programs that change only files which their command line names. The shell opens the files of `>`.
_FILTERS = frozenset(
    {
        *("cat", "column", "cut", "egrep", "expand", "fgrep", "fmt", "fold", "grep", "head", "jq"),
        *("less", "more", "nl", "paste", "pv", "rev", "rg", "sleep", "strings", "tac", "tail"),
        *("tee", "tr", "ts", "uniq", "wc", "yes"),
    }
)


class CallKinds:
    """The process calls of a run that change no file, or only files that they name, and those of side traffic."""

    def __init__(self) -> None:
        # The file names in the command line of each filter.
        self._filters: dict[str, frozenset[bytes]] = {}
        self._sides: set[str] = set()

    def add(self, ref: str, data: Any) -> None:
        """Note a call. `data` is that of its event."""
        if not isinstance(data, dict) or data.get("boundary") != "process":
            return
        if data.get("side"):
            self._sides.add(ref)
        if data.get("via") != "shim":
            return  # a hooked Python announces its own changes
        request = data.get("request")
        argv = request.get("argv") if isinstance(request, dict) else None
        if isinstance(argv, list) and argv and all(isinstance(one, str) for one in argv):
            name, *words = (os.fsencode(os.path.basename(one)) for one in argv)
            if os.fsdecode(name) in _FILTERS:
                self._filters[ref] = frozenset(words)

    def attributed(self, effect: FileEffect) -> Iterator[FileEffect]:
        """Yield the effect in parts, each with the calls that can have made its changes."""
        known = replace(effect, is_side=bool(effect.calls) and self._sides.issuperset(effect.calls))
        if not effect.all_changes or not any(one in self._filters for one in effect.calls):
            yield known
            return
        owners = dict.fromkeys(self._owners(effect.calls, one) for one in effect.all_changes)
        gaps = effect.gaps
        for calls in owners:
            changes, touched = (
                tuple(self._of(calls, effect.calls, found))
                for found in (effect.changes, effect.touched)
            )
            yield replace(known, calls=calls, changes=changes, touched=touched, gaps=gaps)
            gaps = 0

    def _of(
        self, owners: tuple[str, ...], calls: tuple[str, ...], changes: Iterable[Change]
    ) -> Iterator[Change]:
        return (one for one in changes if self._owners(calls, one) == owners)

    def _owners(self, calls: tuple[str, ...], change: Change) -> tuple[str, ...]:
        name = os.path.basename(change.path)
        return tuple(one for one in calls if one not in self._filters or name in self._filters[one])
