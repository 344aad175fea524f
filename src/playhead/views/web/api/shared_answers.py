"""Share one computed response between concurrent equal requests.

A request never receives a response whose computation began before the request arrived: it waits for the next
computation, together with the other requests that arrived meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import anyio
import anyio.to_thread

from playhead import clock

T = TypeVar("T")


class SharedAnswers(Generic[T]):
    """Computes shared responses in threads. `workers`: maximum number of concurrent computations."""

    def __init__(self, workers: int) -> None:
        self._limiter = anyio.CapacityLimiter(workers)
        self._locks: dict[Hashable, anyio.Lock] = {}
        self._made: dict[Hashable, tuple[int, T]] = {}

    async def get(self, key: Hashable, make: Callable[[], T]) -> T:
        asked_ns = clock.mono_ns()
        lock = self._locks.setdefault(key, anyio.Lock())
        try:
            async with lock:
                made = self._made.get(key)
                if made is not None and made[0] > asked_ns:
                    return made[1]
                value = await anyio.to_thread.run_sync(self._stamped, make, limiter=self._limiter)
                self._made[key] = value
                return value[1]
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._locks.pop(key, None)
                self._made.pop(key, None)

    def _stamped(self, make: Callable[[], T]) -> tuple[int, T]:
        """Return the result with the time at which its computation began."""
        began = clock.mono_ns()
        return began, make()
