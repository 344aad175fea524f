"""Run a callback after a module has been imported, or just before its code runs. Knows the import system; does not know
the purpose of the callbacks.

Hooks must not import the libraries they hook: every program would pay for imports that only some programs need.
"""

from __future__ import annotations

import sys

from playhead.host.interrupts import is_interrupt
from playhead.host.stderr import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Callback = Callable[[ModuleType], None]


_waiting: dict[str, list[Callback]] = {}
_warned: dict[str, list[Callable[[], None]]] = {}


def when_imported(name: str, callback: Callback) -> None:
    """Run `callback(module)` right after `name` has been imported; at once if it is imported already."""
    module = sys.modules.get(name)
    if module is not None and not _is_loading(module):
        _call(callback, module)
        return
    _waiting.setdefault(name, []).append(callback)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def before_import(name: str, callback: Callable[[], None]) -> None:
    """Run `callback()` before any code of module `name` runs, if it is ever imported."""
    _warned.setdefault(name, []).append(callback)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def forget(callback: Callable[..., None]) -> None:
    """Remove a callback of `when_imported` or `before_import` that has not run yet."""
    tables: tuple[dict[str, list[Any]], ...] = (_waiting, _warned)
    for table in tables:
        for name, callbacks in list(table.items()):
            table[name] = [kept for kept in callbacks if kept is not callback]
            if not table[name]:
                del table[name]
    if not _waiting and not _warned and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def _is_loading(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


class _Finder:
    """Finds the modules that the other finders find; adds a call after the module's own code has run.

    Not an importlib.abc.MetaPathFinder: that module costs 5 ms, and the type is never checked.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _waiting and fullname not in _warned:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                _follow(spec)
                return spec
        return None


def _follow(spec: ModuleSpec) -> None:
    """Wrap the loader's methods on the instance, so that its type stays the same.

    A loader may serve many modules (that of a zip file does), so each call checks the module's name. If a
    loader cannot be wrapped, its module is loaded without hooks: a coverage gap, not a failure.
    """
    loader: Any = spec.loader
    execute = getattr(loader, "exec_module", None)
    create = getattr(loader, "create_module", None)
    if execute is None or isinstance(loader, type) or not hasattr(loader, "__dict__"):
        return

    def create_module(asked: ModuleSpec) -> ModuleType | None:
        if asked.name == spec.name:
            loader.__dict__.pop("create_module", None)
            # An extension module may run all of its code in here.
            for callback in _warned.pop(spec.name, ()):
                _call(callback)
        made: ModuleType | None = create(asked) if create is not None else None
        return made

    def exec_module(module: ModuleType) -> None:
        if getattr(module, "__name__", None) != spec.name:
            execute(module)
            return
        loader.__dict__.pop("exec_module", None)
        execute(module)
        for callback in _waiting.pop(spec.name, ()):
            _call(callback, module)

    loader.__dict__["exec_module"] = exec_module
    if spec.name in _warned:
        loader.__dict__["create_module"] = create_module


def _call(callback: Callable[..., None], *args: ModuleType) -> None:
    """Call a callback; an error of ours must not fail the host's import."""
    try:
        callback(*args)
    except Exception as error:
        if is_interrupt(error):
            raise
        say(f"{', '.join(module.__name__ for module in args)} is not recorded: {error!r}.")


_finder = _Finder()
