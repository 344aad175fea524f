"""Methods of C types, replaced and put back. Knows how CPython keeps them; no type by name.

Such a type refuses assignment. Its dict is reached through the garbage collector, and the type's
method cache is told by a setter that needs no permission: the types, and isinstance, stay what they
were, which a subclass in its place would not allow.
"""

from __future__ import annotations

import gc

from playhead.hooks.guest import NotAsExpected, Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def graft(patches: Patches, kind: type, name: str, made: Any) -> None:
    """Replace `kind.name` by `made`. NotAsExpected: it is not there, or the change does not show."""
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
        raise NotAsExpected(f"{kind.__qualname__}.{name} does not let itself be replaced")


def _dict_of(kind: type) -> dict[str, Any]:
    for found in gc.get_referents(kind.__dict__):
        if isinstance(found, dict):
            return found
    raise NotAsExpected(f"{kind.__qualname__} keeps its methods elsewhere")


def _put(kind: type, name: str, method: Any) -> None:
    _dict_of(kind)[name] = method
    # Forget what the interpreter has cached about the type (PyType_Modified), then clean up.
    descriptor = type.__dict__["__abstractmethods__"]
    descriptor.__set__(kind, frozenset())
    descriptor.__delete__(kind)
