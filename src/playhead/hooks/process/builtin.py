"""Functions that stand where builtins of `os` stood. Knows how a builtin differs from a function."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Builtin:
    """Calls a function of ours. A builtin that is put into a class does not become a method, and
    neither does this: `class Connection: _read = os.read` goes on working.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def like_builtin(wrap: Callable[[Any], Callable[..., Any]]) -> Callable[[Any], Builtin]:
    """For `Patches.replace`: what `wrap` makes, as a builtin would be."""
    return lambda original: Builtin(wrap(original))
