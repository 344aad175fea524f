"""Names of the standard library, taken from where C makes them. Knows which those are; not who asks.

Every process of a recorded run pays for what is imported at its start, and half of that was not ours:
`typing`, `re`, `json`, `pathlib`, `functools`, `collections` and `threading` are 18 ms that `python -c pass`
does not pay. So what is loaded at every start asks here, keeps what only annotations need below
`TYPE_CHECKING = False`, and makes no pattern, path or JSON before it has to. What may be loaded is listed
in tests/unit/inject/test_startup.py.
"""

from __future__ import annotations

import _thread
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque as deque  # noqa: PLC0414  handed on
    from functools import partial as partial  # noqa: PLC0414  handed on
    from types import ModuleType as ModuleType  # noqa: PLC0414  handed on
    from typing import Any, TypeVar
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414  handed on
    from typing import Protocol as Protocol  # noqa: PLC0414  handed on

    T = TypeVar("T")
else:
    from _collections import deque  # noqa: F401  handed on
    from _functools import partial  # noqa: F401  handed on
    from _operator import itemgetter

    ModuleType = type(sys)
    Protocol = object

    class NamedTuple(tuple):  # noqa: SLOT001  its subclasses say which names there are
        """`typing.NamedTuple`, as far as it is used here: defaults, `_fields` and `_replace`."""

        def __init_subclass__(cls) -> None:
            cls._fields = tuple(cls.__annotations__)
            cls._defaults = {name: vars(cls)[name] for name in cls._fields if name in vars(cls)}
            for at, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(at)))

        def __new__(cls, *given: Any, **named: Any) -> Any:
            members = {**cls._defaults, **dict(zip(cls._fields, given)), **named}  # noqa: B905  too few: defaults
            if len(given) > len(cls._fields) or members.keys() != set(cls._fields):
                raise TypeError(f"{cls.__name__} is made of {', '.join(cls._fields)}")
            return tuple.__new__(cls, [members[name] for name in cls._fields])

        def _replace(self, **changes: Any) -> Any:
            return type(self)(**{**dict(zip(self._fields, self, strict=True)), **changes})

        def __repr__(self) -> str:
            told = [f"{name}={one!r}" for name, one in zip(self._fields, self, strict=True)]
            return f"{type(self).__name__}({', '.join(told)})"


_COPIED = (
    *("__module__", "__name__", "__qualname__", "__doc__", "__type_params__"),
    "__annotate__" if sys.version_info >= (3, 14) else "__annotations__",
)


def wrapping(made: T, original: Any) -> T:
    """`functools.update_wrapper`: `made` goes by the name of what it stands in for."""
    for name in _COPIED:
        if hasattr(original, name):
            setattr(made, name, getattr(original, name))
    vars(made).update(getattr(original, "__dict__", {}))
    vars(made)["__wrapped__"] = original
    return made


def RLock() -> Any:  # noqa: N802  the name is threading's
    """`threading.RLock()`: gevent's, where that has replaced it."""
    return getattr(sys.modules.get("threading"), "RLock", _thread.RLock)()
