"""Keep the order in which the program gets items from a `multiprocessing.Queue` that several processes fill.

The other processes of a run do their work again in a replay, in any order. So the tape has a digest of each item that
the program got. A replay keeps an item that arrives early until it is due. An item whose content differs in each run
(it has a process id, for example) never matches its digest. From then on the replay returns items as they arrive.

The process that made the queue gets its items in this order. Other processes take tasks from a queue that they share,
as the workers of a pool do: there the tape has which process took which item, and a replay lets each of them take its
own (`print_turns`).
"""

from __future__ import annotations

import os
import sys
import zlib

from playhead.hooks.guest import Patches, need
from playhead.recording import order_slot, points
from playhead.recording.where import OWNERS, PROGRAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType
    from typing import Any

_EARLY = "_playhead_early"
_FILES = ("multiprocessing/queues.py", "multiprocessing\\queues.py")
# How long a replay waits for the due item, in its own time, while other items have arrived.
_LONGEST_S = 1.0
# The same while no item has arrived, if the program itself has a timeout: all other waits end before this one.
_LAST_S = 3600.0


class _Early:
    """Items of one queue that have arrived and are not due yet."""

    def __init__(self) -> None:
        self.items: list[tuple[int | None, Any]] = []
        # Whether a due item has not arrived: from then on items are returned as they arrive.
        self.is_lost = False

    def take(self, digest: int | None) -> list[Any]:
        """Remove and return the first item with this digest (None: the first item of all), in a list; empty if there
        is none.
        """
        for at, (known, item) in enumerate(self.items):
            if digest is None or known == digest:
                del self.items[at]
                return [item]
        return []


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is multiprocessing.queues."""
    need(module, "Queue", "Empty", "_ForkingPickler")
    need(module.Queue, "get")
    need(module.SimpleQueue, "__init__", "get")
    pickler = module._ForkingPickler
    patches.replace(module.Queue, "get", lambda original: _get(original, module.Empty, pickler))
    patches.replace(module.SimpleQueue, "__init__", _note_maker)
    patches.replace(module.SimpleQueue, "get", lambda original: _get_simply(original, pickler))


def _get(original: Callable[..., Any], empty: type[Exception], pickler: Any) -> Callable[..., Any]:
    def digest_of(item: Any) -> int | None:
        try:
            return zlib.crc32(bytes(pickler.dumps(item)))
        except Exception:  # noqa: BLE001  an item that can be received only: it has no digest
            return None

    def get(self: Any, block: bool = True, timeout: float | None = None) -> Any:
        if block and timeout is None and not self._closed and _is_shared(self):
            raw = _take(self._rlock, self._recv_bytes)
            self._sem.release()
            return pickler.loads(raw)
        if not _is_noted(self, sys._getframe(1)):
            return original(self, block, timeout)
        if order_slot.active() is None:
            return record(self, block, timeout)
        early = self.__dict__.setdefault(_EARLY, _Early())
        place = order_slot.wait_for(points.ITEM)
        order_slot.acted()
        then = None if place is None else place.what[3]
        if then == points.IN_VAIN:
            raise empty
        if type(then) is not int or early.is_lost:
            found = early.take(None)
            return found[0] if found else original(self, block, timeout)
        last = None if timeout is None else _LAST_S
        while not (found := early.take(then)):
            try:
                item = original(self, True, _LONGEST_S if early.items else last)
            except empty:
                # Every process is idle: the program has changed. From here on it gets what it would get without us.
                early.is_lost = True
                found = early.take(None)
                return found[0] if found else original(self, block, timeout)
            early.items.append((digest_of(item), item))
        return found[0]

    def record(self: Any, block: bool, timeout: float | None) -> Any:
        try:
            item = original(self, block, timeout)
        except empty:
            order_slot.happened(points.ITEM, points.IN_VAIN)
            raise
        order_slot.happened(points.ITEM, digest_of(item))
        return item

    return get


def _note_maker(original: Callable[..., None]) -> Callable[..., None]:
    def note_maker(self: Any, **options: Any) -> None:
        original(self, **options)
        # As the attribute of `Queue`. A process that is not forked gets the queue without it.
        self._opid = os.getpid()

    return note_maker


def _get_simply(original: Callable[[Any], Any], pickler: Any) -> Callable[[Any], Any]:
    def get(self: Any) -> Any:
        if not _is_shared(self):
            return original(self)
        return pickler.loads(_take(self._rlock, self._reader.recv_bytes))

    return get


def _take(lock: Any, receive: Callable[[], Any]) -> Any:
    """Take an item from a queue that several processes read: as `multiprocessing.queues` does, in turns."""
    turns = order_slot.prints
    assert turns is not None  # noqa: S101  asked before
    # Not under the lock: the process whose turn it is needs it.
    turns.await_item()
    with lock:
        item = receive()
        turns.note_item()
    return item


def _is_shared(queue: Any) -> bool:
    """Return whether other processes may take items from this queue: this process has not made it."""
    made_here = queue.__dict__.get("_opid") == os.getpid()
    return order_slot.prints is not None and not made_here and order_slot.is_kept()


def _is_noted(queue: Any, frame: FrameType) -> bool:
    """Return whether the program itself gets the item, in the process that made the queue."""
    if frame.f_code.co_filename.endswith(_FILES) and frame.f_back is not None:  # `get_nowait`
        frame = frame.f_back
    is_program = OWNERS[frame.f_code.co_filename] == PROGRAM
    return is_program and queue.__dict__.get("_opid") == os.getpid() and order_slot.is_kept()
