"""The few names of the standard library that every recorded process needs, without the modules that define
them.

Knows where C makes these names; does not know who uses them.

Every process of a recorded run imports Playhead when it starts, also a child that lives for ten
milliseconds. `typing`, `re`, `json`, `pathlib`, `functools`, `collections` and `threading` cost 18 ms there
that `python -c pass` does not pay, more than all of our own modules. Hence three rules, for the modules that
such a process loads (listed by tests/unit/launch/test_startup.py) and for no others:

1. Names for annotations are imported below `TYPE_CHECKING = False`: type checkers take that name for true,
   and `from typing import TYPE_CHECKING` would load `typing`.
2. Names from C (`deque`, `partial`, locks) and the two classes below come from here.
3. A module that only some processes need stands behind `Later` (see `host.later`).

Everything else imports as usual.
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
        """The parts of `typing.NamedTuple` that we use: defaults, `_fields` and `_replace`."""

        def __init_subclass__(cls) -> None:
            cls._fields = tuple(cls.__annotations__)
            cls._defaults = {name: vars(cls)[name] for name in cls._fields if name in vars(cls)}
            for at, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(at)))

        def __new__(cls, *given: Any, **named: Any) -> Any:
            members = {**cls._defaults, **dict(zip(cls._fields, given)), **named}  # noqa: B905  too few: defaults
            if len(given) > len(cls._fields) or members.keys() != set(cls._fields):
                raise TypeError(f"{cls.__name__} has the fields {', '.join(cls._fields)}")
            return tuple.__new__(cls, [members[name] for name in cls._fields])

        def _replace(self, **changes: Any) -> Any:
            return type(self)(**{**dict(zip(self._fields, self, strict=True)), **changes})

        def __repr__(self) -> str:
            members = [f"{name}={one!r}" for name, one in zip(self._fields, self, strict=True)]
            return f"{type(self).__name__}({', '.join(members)})"


_COPIED = (
    *("__module__", "__name__", "__qualname__", "__doc__", "__type_params__"),
    "__annotate__" if sys.version_info >= (3, 14) else "__annotations__",
)


def wrapping(made: T, original: Any) -> T:
    """Give `made` the name of the function that it replaces, like `functools.update_wrapper`."""
    for name in _COPIED:
        if hasattr(original, name):
            setattr(made, name, getattr(original, name))
    vars(made).update(getattr(original, "__dict__", {}))
    vars(made)["__wrapped__"] = original
    return made


def RLock() -> Any:  # noqa: N802  the name is threading's
    """Return a lock like `threading.RLock()`; gevent's, if gevent has replaced it."""
    return getattr(sys.modules.get("threading"), "RLock", _thread.RLock)()
