"""Keep the order in which the program receives the results of worker processes.

The worker processes run in any order in a replay; a result that arrives early is kept until it is due. Knows the
threads of `multiprocessing.pool` and of `ProcessPoolExecutor` that receive results.
"""

from __future__ import annotations

from playhead.hooks.guest import Patches, need
from playhead.recording import lanes, order_slot, points

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

    from playhead.replay.points_table import Place


class _Due:
    """Holds results that have arrived, and returns them in the order of the tape."""

    def __init__(self) -> None:
        self._lane = lanes.current.get()
        self._kept: dict[Any, Any] = {}
        self._place: Place | None = None
        self._next = self._look()

    def add(self, key: Any, result: Any) -> None:
        self._kept[key] = result

    def take(self) -> Iterator[Any]:
        """Yield the results that are due now. Results that are not on the tape follow after all taped ones."""
        while self._next in self._kept:
            result = self._kept.pop(self._next)
            if (head := order_slot.active()) is not None and self._place is not None:
                head.note(self._place, None)
            self._next = self._look()
            yield result
        if self._next is None:
            yield from self.take_all()

    def take_all(self) -> Iterator[Any]:
        while self._kept:
            yield self._kept.pop(next(iter(self._kept)))

    def __len__(self) -> int:
        return len(self._kept)

    def _look(self) -> Any:
        head = order_slot.active()
        self._place = None if head is None else head.take(self._lane, points.RECEIVED)
        return None if self._place is None else _key(self._place.what[3])


def _key(detail: Any) -> Any:
    return tuple(detail) if isinstance(detail, list) else detail


def hook_pool(module: ModuleType, patches: Patches) -> None:
    """`module` is multiprocessing.pool."""
    need(module.Pool, "_handle_results")

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def _handle_results(outqueue: Any, get: Callable[[], Any], cache: Any) -> None:
            receive = _noted(get) if order_slot.active() is None else _reordered(get)
            original(outqueue, receive, cache)

        return _handle_results

    patches.replace(module.Pool, "_handle_results", wrap)
    if hasattr(module.Pool, "_wait_for_updates"):
        patches.replace(module.Pool, "_wait_for_updates", _wait_for_updates)


def _wait_for_updates(original: Callable[..., None]) -> Callable[..., None]:
    """Let the thread that looks after the workers wait while a result is not due.

    The pool wakes this thread for results, too, although another thread takes them. While that thread waits for the
    place of a callback, this one would run in a loop, and a thread that runs keeps the replay from moving on. It also
    learns by `change_notifier` that no result is left.
    """

    def wait_for_updates(sentinels: Any, change_notifier: Any, timeout: Any = None) -> None:
        if order_slot.active() is not None:
            news = change_notifier._reader
            sentinels = [one for one in sentinels if type(one) is int or one is news]
        original(sentinels, change_notifier, timeout)

    return wait_for_updates


def _noted(get: Callable[[], Any]) -> Callable[[], Any]:
    def receive() -> Any:
        result = get()
        if result is not None:
            order_slot.happened(points.RECEIVED, list(result[:2]))
        return result

    return receive


def _reordered(get: Callable[[], Any]) -> Callable[[], Any]:
    due = _Due()
    ready: list[Any] = []

    def receive() -> Any:
        while not ready:
            result = get()
            if result is None:  # the pool ends
                ready.extend([*due.take_all(), None])
            else:
                due.add(tuple(result[:2]), result)
                ready.extend(due.take())
        return ready.pop(0)

    return receive


def hook_executor(module: ModuleType, patches: Patches) -> None:
    """`module` is concurrent.futures.process."""
    thread = module._ExecutorManagerThread
    need(thread, "process_result_item", "run")
    waiting: dict[int, _Due] = {}

    def wrap(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def process_result_item(self: Any, item: Any) -> None:
            number = getattr(item, "work_id", None)
            if number is None or order_slot.active() is None:
                if number is not None:
                    order_slot.happened(points.RECEIVED, number)
                return original(self, item)
            due = waiting.get(id(self))
            if due is None:
                due = waiting[id(self)] = _Due()
            due.add(number, item)
            for one in [*due.take()]:
                original(self, one)
            if len(due) and len(due) >= len(self.pending_work_items):
                # No other result can arrive, so the due one never will: the program has changed.
                for one in [*due.take_all()]:
                    original(self, one)
            return None

        return process_result_item

    patches.replace(thread, "process_result_item", wrap)
