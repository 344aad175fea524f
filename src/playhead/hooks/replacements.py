"""Replace functions that cannot be replaced by assignment alone. Does not know which functions.

Three cases:

- Copies: `from time import time` made before the hooks were installed. A program that starts under a recording
  copies the replacement. A program that starts recording later holds originals: those in its modules are found
  here, those in default arguments and class bodies are not (docs/determinism.md).
- Methods of C types, which refuse assignment. The type's dict is reached through the garbage collector, and a
  setter that needs no permission invalidates the type's method cache. A subclass in the type's place would
  change `type(x)` and break `isinstance` for objects that exist already.
- Builtins: a Python function binds to an instance when it is a class attribute, a builtin does not.
"""

from __future__ import annotations

import gc
import sys

from playhead.hooks.guest import NotAsExpected, Patches
from playhead.host.lean import ModuleType
from playhead.recording import where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def replace_copies(patches: Patches, made: dict[int, Any]) -> None:
    """Replace each copy of an original by `made[id(original)]`, in all modules of the program and of packages, under
    any name.
    """
    loaded: list[Any] = list(sys.modules.values())  # a program may have put any object there
    for module in loaded:
        if not isinstance(module, ModuleType) or not _is_of_the_program(module):
            continue
        for name, value in list(vars(module).items()):
            if id(value) in made:
                patches.replace(module, name, lambda original: made[id(original)])


def _is_of_the_program(module: ModuleType) -> bool:
    file = vars(module).get("__file__")
    if module.__name__ == "__main__":
        return True
    # Extension modules have no copies: they read the time in C. The copies in the standard library are for its own
    # waits, and stay.
    return isinstance(file, str) and not where.is_standard(file) and not where.is_own(file)


def graft(patches: Patches, kind: type, name: str, made: Any) -> None:
    """Replace `kind.name` by `made`. Raise NotAsExpected if there is no such method, or if it was not replaced."""
    methods = _dict_of(kind)
    if name not in methods:
        raise NotAsExpected(f"{kind.__qualname__} has no {name}")
    original = methods[name]
    _put(kind, name, made)

    def undo() -> None:
        if _dict_of(kind).get(name) is made:
            _put(kind, name, original)

    patches.on_undo(undo)
    if kind.__dict__.get(name) is not made:
        raise NotAsExpected(f"{kind.__qualname__}.{name} cannot be replaced")


def _dict_of(kind: type) -> dict[str, Any]:
    for found in gc.get_referents(kind.__dict__):
        if isinstance(found, dict):
            return found
    raise NotAsExpected(f"{kind.__qualname__} keeps its methods elsewhere")


def _put(kind: type, name: str, method: Any) -> None:
    _dict_of(kind)[name] = method
    # Invalidate the interpreter's caches of the type (PyType_Modified), then clean up.
    descriptor = type.__dict__["__abstractmethods__"]
    descriptor.__set__(kind, frozenset())
    descriptor.__delete__(kind)


class Builtin:
    """Calls a function of ours. Like a builtin, it does not become a method in the body of a class, so
    `class Connection: _read = os.read` keeps working.
    """

    # Outside of `__dict__`, which `Patches.replace` copies from the function that is replaced: also from a Builtin.
    __slots__ = ("__dict__", "__weakref__", "_function")

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def like_builtin(wrap: Callable[[Any], Callable[..., Any]]) -> Callable[[Any], Builtin]:
    """Return a function for `Patches.replace` that makes the result of `wrap` behave like a builtin."""
    return lambda original: Builtin(wrap(original))
