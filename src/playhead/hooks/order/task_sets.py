"""Sets of asyncio tasks in the order in which the tasks were made.

A set of tasks iterates by address, which differs from run to run: which task `as_completed` starts first,
which one a task group cancels first. Here they iterate by the number in the task's name, while recording
and in a replay. Knows where asyncio hands out such sets.
"""

from __future__ import annotations

from typing import Any

from playhead.hooks.guest import Patches, holders, need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType


class TaskSet(set[Any]):
    """A set that iterates in the order in which its tasks were made."""

    def __iter__(self) -> Iterator[Any]:
        return iter(in_order(set.__iter__(self)))


def in_order(tasks: Iterable[Any]) -> list[Any]:
    return sorted(tasks, key=_number)


def _number(task: Any) -> int:
    """Of a task without a name of its own: asyncio counts them. Others keep the order they have."""
    name = task.get_name() if hasattr(task, "get_name") else ""
    number = name.removeprefix("Task-")
    return int(number) if number.isdecimal() else 0


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is asyncio.tasks."""
    need(module, "as_completed", "wait", "all_tasks", "ensure_future")
    _replace(patches, module, "wait", _wait)
    _replace(patches, module, "all_tasks", _all_tasks)
    _replace(patches, module, "as_completed", lambda original: _as_completed(original, module))


def _replace(patches: Patches, module: ModuleType, name: str, wrap: Callable[[Any], Any]) -> None:
    """Also where it was copied to: `from asyncio import wait`."""
    original = getattr(module, name)
    made = wrap(original)
    for holder in holders(name, original):
        patches.replace(holder, name, lambda _: made)


def _wait(original: Callable[..., Any]) -> Callable[..., Any]:
    async def wait(fs: Any, **options: Any) -> Any:
        done, pending = await original(fs, **options)
        return TaskSet(done), TaskSet(pending)

    return wait


def _all_tasks(original: Callable[..., Any]) -> Callable[..., Any]:
    def all_tasks(loop: Any = None) -> Any:
        return TaskSet(original(loop))

    return all_tasks


def _as_completed(original: Callable[..., Any], module: ModuleType) -> Callable[..., Any]:
    def as_completed(fs: Any, **options: Any) -> Any:
        if isinstance(fs, (list, tuple)) and module.events._get_running_loop() is not None:
            # It would make tasks of coroutines in the order of a set.
            fs = [module.ensure_future(one) for one in dict.fromkeys(fs)]
        return original(fs, **options)

    return as_completed


def hook_groups(module: ModuleType, patches: Patches) -> None:
    """`module` is asyncio.taskgroups."""
    need(module, "TaskGroup")

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def __init__(self: Any, *args: Any, **options: Any) -> None:  # noqa: N807  it stands for that
            original(self, *args, **options)
            if type(getattr(self, "_tasks", None)) is set:
                self._tasks = TaskSet(self._tasks)

        return __init__

    patches.replace(module.TaskGroup, "__init__", wrap)
