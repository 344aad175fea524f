"""Turn changes of files into the data of `files` events. Pure: knows the members of the event; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from playhead.workspace.chosen_files import MOST_NAMED, LeftOut
from playhead.workspace.tree_listing import Change, encode_changes, shown

# Maximum number of changes in one event on the tape.
_MOST_CHANGES = 2_000
# With more changes, losses are in an event of their own: a large event is a blob, and `verify` and `show` would have to
# read it to count them.
_FEW_CHANGES = 10


class ChangeOrigin(NamedTuple):
    """Where the changes between two marks come from."""

    # The calls that were open; without any, the program's own code made the changes.
    calls: list[str]
    # The call that ended last, and the call that starts now.
    after: str | None
    before: str | None
    until_ns: int
    # By workspace: the paths that the program's own code changed while calls were open. Filled by `Watcher._look`.
    own: dict[int, frozenset[bytes]]


def state_event(moment: int, **state: int) -> dict[str, Any]:
    """Return an event without changes: about changes that are lost (`gaps`), announced (`pending`) or all stored
    (`settled`).
    """
    return {"workspace": 0, "calls": [], "until_ns": moment, "changes": [], **state}


def effect_events(
    number: int,
    changes: list[Change],
    origin: ChangeOrigin,
    *,
    gaps: int,
    left_out: list[LeftOut],
    is_scanned: bool,
) -> Iterator[dict[str, Any]]:
    """Yield the events of changes in one workspace. There is at least one, for `gaps` and `left_out`."""
    if gaps and len(changes) > _FEW_CHANGES:
        yield state_event(origin.until_ns, gaps=gaps)
        gaps = 0
    for start in range(0, max(1, len(changes)), _MOST_CHANGES):
        part = changes[start : start + _MOST_CHANGES]
        data: dict[str, Any] = {
            "workspace": number,
            "calls": origin.calls,
            "until_ns": origin.until_ns,
            "changes": encode_changes(one for one in part if not one.is_touch),
        }
        if touched := [one for one in part if one.is_touch]:
            data["touched"] = encode_changes(touched)
        if origin.calls:
            data["own_apart"] = True
        elif origin.after is not None:
            data["after"] = origin.after
        if not origin.calls and origin.before is not None:
            data["before"] = origin.before
        if gaps:
            data["gaps"], gaps = gaps, 0
        if is_scanned:
            data["scanned"] = True
        if left_out:
            data["left_out"] = [
                {"path": shown(one.path), "why": one.why} for one in left_out[:MOST_NAMED]
            ]
            left_out = []
        yield data
