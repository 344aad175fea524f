"""Find the order in which concurrent workers changed a shared store.

The tape has the start and the end of each mutation. If two overlap, these do not show which of them came first
inside the store's own lock: a worker may get a task and be suspended before its call returns. The results do show
it: in the right order, every mutation returns its recorded result. So the mutations are tried on a copy of the
store's content, in the order of their ends, and overlapping ones in other orders until the results fit. Knows
watched stores; does not know how workers are run.
"""

from __future__ import annotations

import copy
from typing import Any

from playhead.encoding.values import freeze, thaw
from playhead.hooks.state.watch import UNKNOWN, Watch, watch_of_store
from playhead.recording.recorder import Recorder
from playhead.replay.matching.taped import TapedCall
from playhead.tape.reader import Tape

# Maximum number of mutations to try. Beyond it, the mutations stay in the order of their ends.
_MOST_TRIES = 20_000
# Maximum number of overlapping mutations to consider: no more workers than this overlap at one moment.
_MOST_OVERLAPPING = 64

Content = dict[str, Any]


def fitting_order(mutations: list[TapedCall], recorder: Recorder, tape: Tape) -> list[TapedCall]:
    """Return the mutations in an order in which their results fit. `mutations` are in the order of their ends, and
    are returned unchanged if none overlap, if a store's content cannot be copied, or if no order fits.
    """
    if not any(len(_next(mutations[at:])) > 1 for at in range(len(mutations))):
        return mutations
    stores = {name: watch_of_store(name, recorder) for name in map(_store, mutations)}
    watches = [one for one in stores.values() if one is not None]
    contents = [_copied(watch.store) for watch in watches]
    if not watches or any(one is None for one in contents):
        return mutations
    before = [dict(vars(watch.store)) for watch in watches]
    try:
        return _Search(watches, tape).run(mutations) or mutations
    finally:
        for watch, content in zip(watches, before, strict=True):
            _put(watch.store, content)


class _Search:
    """Searches depth first; a step back restores the content of the stores."""

    def __init__(self, watches: list[Watch], tape: Tape) -> None:
        self._watches = watches
        self._tape = tape
        self._tries = 0

    def run(self, mutations: list[TapedCall]) -> list[TapedCall] | None:
        # Each entry: the order so far, the mutations that remain, the one to try, the content before it.
        waiting = self._branches([], mutations)
        while waiting:
            order, remaining, chosen, contents = waiting.pop()
            self._tries += 1
            if self._tries > _MOST_TRIES:
                return None
            for watch, content in zip(self._watches, contents, strict=True):
                _put(watch.store, _copied(content) or {})
            if not self._fits(chosen):
                continue
            order = [*order, chosen]
            remaining = [one for one in remaining if one is not chosen]
            # If only one mutation can be next, no step back leads here, so no content needs to be copied.
            while remaining and len(_next(remaining)) == 1:
                if not self._fits(remaining[0]):
                    break
                order.append(remaining.pop(0))
            else:
                if not remaining:
                    return order
                waiting += self._branches(order, remaining)
        return None

    def _branches(self, order: list[TapedCall], remaining: list[TapedCall]) -> list[Any]:
        """Return the mutations that may be next. The one that ended first is tried first, so it is last in the list."""
        contents = [_copied(watch.store) or {} for watch in self._watches]
        return [(order, remaining, one, contents) for one in reversed(_next(remaining))]

    def _fits(self, call: TapedCall) -> bool:
        """Make the mutation, and return whether its result is the recorded one."""
        name, _, method = call.name.rpartition(".")
        watch = next((one for one in self._watches if one.name == name), None)
        if watch is None or call.outcome is None:
            return True
        request = call.request if isinstance(call.request, dict) else {}
        arguments = thaw(request.get("arguments"))
        made = watch.apply(method, arguments if isinstance(arguments, dict) else {})
        ended = self._tape.whole(call.outcome).data
        if made is UNKNOWN or ended.get("how") != "returned":
            return True
        return bool(freeze(made) == ended.get("value"))


def _next(remaining: list[TapedCall]) -> list[TapedCall]:
    """The mutations that may come next: those that began before any remaining one had ended."""
    if not remaining or remaining[0].outcome is None:
        return remaining[:1]
    end = remaining[0].outcome
    return [
        one
        for one in remaining[:_MOST_OVERLAPPING]
        if (one.event.mono, one.event.seq) <= (end.mono, end.seq)
    ]


def _store(call: TapedCall) -> str:
    return call.name.rpartition(".")[0]


def _copied(store: Any) -> Content | None:
    """Return a copy of the content of a store, or of such a copy. Locks are shared. None: the store has content that
    cannot be copied, such as a connection.
    """
    members = store if isinstance(store, dict) else getattr(store, "__dict__", None)
    if members is None:
        return None
    content: Content = {}
    for name, value in members.items():
        try:
            content[name] = copy.deepcopy(value)
        except Exception:  # noqa: BLE001  the program's objects may raise anything
            if type(value).__module__ not in ("_thread", "threading"):
                return None
            content[name] = value
    return content


def _put(store: Any, content: Content) -> None:
    members = vars(store)
    for name in [name for name in members if name not in content]:
        del members[name]
    members.update(content)
