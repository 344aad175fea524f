"""Make sets of asyncio tasks, and of anyio's tasks and cancel scopes, iterate in the order in which these were made.

A plain set of tasks iterates in the order of memory addresses, which differs from run to run. That order decides which
task `as_completed` starts first, and which one a task group cancels first. So the sets are replaced, while recording
and in a replay. Knows where asyncio returns such sets, and where anyio keeps its own.
"""

from __future__ import annotations

from inspect import isgenerator
from typing import Any

from playhead.hooks.guest import Patches, holders, need
from playhead.hooks.order.lane_hooks import numbered
from playhead.recording import lanes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType


class TaskSet(set[Any]):
    """A set that iterates in the order in which its tasks were made."""

    def __iter__(self) -> Iterator[Any]:
        return iter(in_order(set.__iter__(self)))

    # For `all_tasks() - {current_task()}` and `pending | {task}`: the inherited methods return a plain set.
    def __sub__(self, other: Any) -> Any:
        return _as_tasks(super().__sub__(other))

    def __or__(self, other: Any) -> Any:
        return _as_tasks(super().__or__(other))

    def __and__(self, other: Any) -> Any:
        return _as_tasks(super().__and__(other))

    def difference(self, *others: Any) -> Any:
        return _as_tasks(super().difference(*others))

    def union(self, *others: Any) -> Any:
        return _as_tasks(super().union(*others))

    def pop(self) -> Any:
        """Remove and return the task that was made first."""
        first = next(iter(self), None)
        if first is None:
            return super().pop()  # raises
        self.remove(first)
        return first


def _as_tasks(made: Any) -> Any:
    return TaskSet(made) if type(made) is set else made


class AddedSet(set[Any]):
    """A set that iterates in the order in which its members were added."""

    def __init__(self, members: Iterable[Any] = ()) -> None:
        super().__init__()
        self._order: dict[int, Any] = {}
        for one in members:
            self.add(one)

    def __iter__(self) -> Iterator[Any]:
        return iter([*self._order.values()])

    def add(self, member: Any) -> None:
        super().add(member)
        self._order.setdefault(id(member), member)

    def discard(self, member: Any) -> None:
        super().discard(member)
        self._order.pop(id(member), None)

    def remove(self, member: Any) -> None:
        super().remove(member)
        self._order.pop(id(member), None)

    def clear(self) -> None:
        super().clear()
        self._order.clear()


def in_order(tasks: Iterable[Any]) -> list[Any]:
    return sorted(tasks, key=_number)


def _number(task: Any) -> int:
    """Return the number of this task in the order in which tasks were made; if it has none, the number in its name."""
    made = getattr(task, lanes.NUMBER, None)
    if type(made) is int:
        return made
    name = task.get_name() if hasattr(task, "get_name") else ""
    number = name.removeprefix("Task-")
    return int(number) if number.isdecimal() else 0


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is asyncio.tasks."""
    need(module, "as_completed", "wait", "all_tasks", "ensure_future", "futures")
    need(module.futures, "wrap_future")
    _replace(patches, module, "wait", _wait)
    _replace(patches, module, "all_tasks", _all_tasks)
    _replace(patches, module, "as_completed", lambda original: _as_completed(original, module))
    _replace(patches, module.futures, "wrap_future", _wrap_future)


def _replace(patches: Patches, module: ModuleType, name: str, wrap: Callable[[Any], Any]) -> None:
    """Replace a function in its module and in those that copied it (`from asyncio import wait`)."""
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


def _wrap_future(original: Callable[..., Any]) -> Callable[..., Any]:
    def wrap_future(future: Any, *, loop: Any = None) -> Any:
        made = original(future, loop=loop)
        # Jobs of executors are members of such sets, too.
        return made if made is future else numbered(made)

    return wrap_future


def _as_completed(original: Callable[..., Any], module: ModuleType) -> Callable[..., Any]:
    def as_completed(fs: Any, **options: Any) -> Any:
        loop = module.events._get_running_loop()
        if not isinstance(fs, (list, tuple, TaskSet)) or not hasattr(loop, "_ready"):
            return original(fs, **options)
        # The original would start coroutines as tasks in the order of a plain set.
        fs = [module.ensure_future(one) for one in dict.fromkeys(fs)]
        made = _in_given_order(loop, fs, lambda: original(fs, **options))
        # Until 3.12 it is a generator, which asks its tasks for their results when it is first used.
        return _begun_in_order(made, loop, fs) if isgenerator(made) else made

    return as_completed


def _begun_in_order(made: Iterator[Any], loop: Any, fs: list[Any]) -> Iterator[Any]:
    first = _in_given_order(loop, fs, lambda: next(made, None))
    if first is not None:
        yield first
        yield from made


def _in_given_order(loop: Any, fs: list[Any], ask: Callable[[], Any]) -> Any:
    """Call `ask`, which asks these tasks for their results, in the order of a plain set. The callbacks of tasks that
    are done already then run in the order in which the tasks were given.
    """
    ready, position = loop._ready, {id(one): n for n, one in enumerate(fs)}
    before = len(ready)
    result = ask()
    made = [ready.pop() for _ in range(len(ready) - before)]
    made.reverse()
    made.sort(key=lambda one: position.get(id(one._args[0]), -1) if one._args else -1)
    ready.extend(made)
    return result


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


def hook_anyio(module: ModuleType, patches: Patches) -> None:
    """`module` is anyio._backends._asyncio. A scope cancels its own tasks first, then those of its child scopes."""
    need(module, "CancelScope", "TaskGroup")
    for owner, names in (
        (module.CancelScope, ("_tasks", "_child_scopes")),
        (module.TaskGroup, ("_tasks",)),
    ):
        patches.replace(owner, "__init__", with_added_sets(names))


def with_added_sets(names: tuple[str, ...]) -> Callable[[Any], Callable[..., None]]:
    """Wrap an `__init__`: the sets with these names become sets that keep their order."""

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def __init__(self: Any, *args: Any, **options: Any) -> None:  # noqa: N807  it stands for that
            original(self, *args, **options)
            for name in names:
                if type(getattr(self, name, None)) is set:
                    setattr(self, name, AddedSet(getattr(self, name)))

        return __init__

    return wrap
