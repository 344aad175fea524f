"""The files of a recorded run at any moment, read from its tape. Reads only.

Knows events and the pool; not views. A step is a call, by its number in the run's story; here steps are
moments of the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from playhead import events
from playhead.errors import TapeDamaged, UsageError
from playhead.events import Event
from playhead.tape.reader import Tape
from playhead.tape.reading.file_losses import FileLosses
from playhead.workspace.blobs.pool import Pool
from playhead.workspace.call_kinds import CallKinds
from playhead.workspace.git_objects import GitObjects
from playhead.workspace.tree_listing import (
    Change,
    FileEntry,
    Tree,
    between,
    decode_changes,
    decode_listing,
)

_OBJECTS = b".git/objects/"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEffect:
    """Files that changed together. `calls` were open then; without any, the agent's own code made the changes."""

    workspace: int
    calls: tuple[str, ...]
    after: str | None
    until_ns: int
    changes: tuple[Change, ...]
    gaps: int
    ref: str
    # The call that started right after these changes, if it is known.
    before: str | None = None
    # Folders that git ignores and that are no longer recorded completely from here on.
    exceeded: tuple[str, ...] = ()
    # Paths that changed and are not stored, each with the reason.
    left_out: tuple[tuple[str, str], ...] = ()
    # Whether changes by the program's own code are in separate effects, without calls.
    own_apart: bool = False
    # Files of which only the time changed. Views do not show them.
    touched: tuple[Change, ...] = ()
    # Whether an agent's own housekeeping made them: a replay may do without these calls.
    is_side: bool = False
    # The run was resumed after this call, and the files were changed in between.
    resumed_after: str | None = None

    @property
    def all_changes(self) -> tuple[Change, ...]:
        return self.changes + self.touched

    @property
    def served_with(self) -> tuple[str, ...]:
        """Return the calls with which a replay makes these changes. None of them: the agent's own code makes the
        changes.
        """
        return self.calls or ((self.resumed_after,) if self.resumed_after else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceStart:
    """A folder as the run found it; `refused` says why it was not recorded."""

    number: int
    root: str
    tree: str | None
    facts: Mapping[str, Any]

    @property
    def only(self) -> tuple[str, ...] | None:
        """The names of single files in a folder that is not a workspace; None for a workspace."""
        names = self.facts.get("only")
        return None if names is None else tuple(str(one) for one in names)

    @property
    def refused(self) -> str | None:
        return self.facts.get("refused")

    @property
    def left_out(self) -> tuple[str, ...] | None:
        """The paths that the snapshot left out. None: there were too many to name them all."""
        named = tuple(str(one["path"]) for one in self.facts.get("left_out", ()))
        return named if len(named) == self.facts.get("left_out_count", len(named)) else None


class FileHistory:
    """The workspaces of one run and all changes to them, in order."""

    def __init__(self, starts: list[WorkspaceStart], effects: list[FileEffect], pool: Pool) -> None:
        self.starts = starts
        self.effects = effects
        self.pool = pool
        # Scripts that the Pythons of the run executed, as they were named. Not those of calls, which are not run again.
        self.pythons: list[str] = []
        self._trees: dict[int, dict[bytes, FileEntry]] = {}
        self._readers: dict[int, Callable[[FileEntry], bytes]] = {}

    @property
    def gaps(self) -> int:
        return self.gaps_until(None)

    def gaps_until(self, moment: int | None) -> int:
        """Return the number of changes before a moment that are not on the tape. A moment of None means the whole
        run.
        """
        return sum(one.gaps for one in self.effects if moment is None or one.until_ns <= moment)

    def start(self, number: int = 0) -> Tree:
        """Return the workspace before the first call. UsageError: the run has no workspace."""
        found = next((one for one in self.starts if one.number == number and one.tree), None)
        if found is None or found.tree is None:
            raise UsageError(self._why_none())
        if number not in self._trees:
            self._trees[number] = decode_listing(self.pool.read(found.tree))
        return self._trees[number]

    def at(self, moment: int | None, number: int = 0) -> dict[bytes, FileEntry]:
        """Return the workspace at a moment; None means the end."""
        tree = dict(self.start(number))
        for effect in self.effects:
            if effect.workspace == number and (moment is None or effect.until_ns <= moment):
                apply_changes(tree, effect.all_changes)
        return tree

    def before(
        self, step: int, numbers: Mapping[str, int], moment: int, number: int = 0
    ) -> dict[bytes, FileEntry]:
        """Return the workspace when call `step` started, at `moment`. `numbers` maps each call to its number.

        The moment alone is not enough: changes of the agent's own code are stored with the mark of the call that
        follows, which is a little later than its event.
        """

        def is_earlier(effect: FileEffect) -> bool:
            if effect.calls:
                return all(numbers.get(one, 0) < step for one in effect.calls)
            if effect.before is not None and effect.before in numbers:
                return numbers[effect.before] <= step
            return effect.until_ns <= moment

        tree = dict(self.start(number))
        for effect in self.effects:
            if effect.workspace == number and is_earlier(effect):
                apply_changes(tree, effect.all_changes)
        return tree

    def versions(
        self, path: bytes, number: int = 0
    ) -> Iterator[tuple[FileEffect | None, FileEntry | None]]:
        """Every version of one file: at the start, then after each effect that changed it."""
        yield None, self.start(number).get(path)
        for effect in self.effects:
            for change in effect.changes:
                if effect.workspace == number and change.path == path:
                    yield effect, change.after

    def content(self, entry: FileEntry, number: int = 0) -> bytes:
        """Return the bytes of a file. TapeDamaged: the store does not have them."""
        if number not in self._readers:
            self._readers[number] = reader_of(self.pool, self.start(number))
        return self._readers[number](entry)

    def _why_none(self) -> str:
        refused = next((one for one in self.starts if one.refused), None)
        if refused is not None:
            return f"This run has no workspace on its tape. {refused.refused}"
        return (
            "This run has no workspace on its tape: it is a replay, or was recorded without one "
            "(--no-workspace, a level below full, or an earlier version of Playhead)."
        )


def reader_of(pool: Pool, tree: Tree) -> Callable[[FileEntry], bytes]:
    """Return a function that reads files of a tree. Objects of git are looked up in the repository that is part of
    it.
    """
    paths = {
        path[len(_OBJECTS) :]: entry.id
        for path, entry in tree.items()
        if path.startswith(_OBJECTS) and entry.is_file
    }
    objects = GitObjects(paths, pool.read, pool.read_part)

    def read(entry: FileEntry) -> bytes:
        name = entry.git_object
        if name is None:
            return pool.read(entry.id)
        try:
            return objects.content(bytes.fromhex(name))
        except ValueError as error:
            raise TapeDamaged(f"A recorded file cannot be read: {error}.") from None

    return read


def apply_changes(tree: dict[bytes, FileEntry], changes: Iterable[Change]) -> None:
    for change in changes:
        if change.after is None:
            tree.pop(change.path, None)
        else:
            tree[change.path] = change.after


def read_history(tape: Tape, home: Path) -> FileHistory:
    """Read the file history of a tape. `home` is the store whose pool has the content."""
    pool = Pool(home)
    history, losses, kinds = FileHistory([], [], pool), FileLosses(), CallKinds()
    last_call: str | None = None
    for event in tape.events():
        if event.kind == events.CALL and event.ours:
            last_call = event.ref
            kinds.add(event.ref, event.data)
        if event.kind == events.SEGMENT_START and event.ours:
            history.pythons += _script(event)
        if event.kind in (events.WORKSPACE, events.FILES) and event.ours:
            whole = tape.whole(event)
            if not isinstance(whole.data, dict):
                raise TapeDamaged(f"Event {event.ref} says nothing about files.")
            if event.kind == events.WORKSPACE:
                _begin(history, _start(whole), event, last_call)
            elif losses.add(whole):
                history.effects.append(_effect(whole))
    for event, count in losses.unsettled():
        history.effects.append(replace(_effect(event), gaps=count))
    history.effects = [part for one in history.effects for part in kinds.attributed(one)]
    return history


def _script(event: Event) -> list[str]:
    """The script of a Python that the command itself started; see `FileHistory.pythons`."""
    argv = event.data.get("argv") if isinstance(event.data, dict) else None
    is_of_call = isinstance(event.parent, str) and not event.parent.endswith(":0")
    return [str(argv[0])] if isinstance(argv, list) and argv and not is_of_call else []


def _begin(
    history: FileHistory, start: WorkspaceStart, event: Event, last_call: str | None
) -> None:
    """Add a snapshot. A resumed run has a second one: the changes in between belong to no call."""
    known = [one for one in history.starts if one.tree and one.number == start.number]
    if not known or start.tree is None:
        history.starts.append(start)
        return
    now = decode_listing(history.pool.read(start.tree))
    history.effects.append(
        FileEffect(
            workspace=start.number,
            calls=(),
            after=None,
            until_ns=event.mono,
            changes=tuple(between(history.at(None, start.number), now)),
            gaps=0,
            ref=event.ref,
            resumed_after=last_call,
        )
    )


def _start(event: Event) -> WorkspaceStart:
    data = event.data
    tree, only, refused = data.get("tree"), data.get("only"), data.get("refused")
    left_out = data.get("left_out") or []
    fits = (
        isinstance(tree, str | None)
        and isinstance(only, list | None)
        and isinstance(refused, str | None)
        and isinstance(left_out, list)
        and all(isinstance(one, dict) for one in left_out)
        and type(data.get("left_out_count", 0)) is int
    )
    if not fits:
        raise TapeDamaged(
            f"Event {event.ref} is not about a workspace (a member has another type)."
        )
    try:
        return WorkspaceStart(
            number=int(data.get("workspace", -1)),
            root=str(data.get("root", "")),
            tree=tree,
            facts=data,
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise TapeDamaged(f"Event {event.ref} is not about a workspace ({error!r}).") from None


def _effect(event: Event) -> FileEffect:
    data = event.data
    try:
        return FileEffect(
            workspace=int(data["workspace"]),
            calls=tuple(str(one) for one in data["calls"]),
            after=_ref(data.get("after")),
            until_ns=int(data["until_ns"]),
            changes=tuple(decode_changes(data["changes"])),
            touched=tuple(decode_changes(data.get("touched") or ())),
            gaps=int(data.get("gaps", 0)),
            ref=event.ref,
            before=_ref(data.get("before")),
            own_apart=data.get("own_apart") is True,
            left_out=tuple(
                (str(one["path"]), str(one["why"])) for one in data.get("left_out") or ()
            ),
            exceeded=tuple(
                str(one["path"]) for one in data.get("left_out") or () if one["why"] == "ignored"
            ),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise TapeDamaged(f"Event {event.ref} is not about files ({error!r}).") from None


def _ref(value: Any) -> str | None:
    if not isinstance(value, str | None):
        raise TypeError(f"{value!r:.80} is not the name of an event")
    return value
