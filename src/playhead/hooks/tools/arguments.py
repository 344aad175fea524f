"""Arguments by parameter name, quickly. Knows signatures; not tools.

`inspect.Signature.bind` costs more than recording the call: the names are worked out once a
function, and a call is a zip.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

Bind = Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]


def binder(function: Callable[..., Any], *, method: bool) -> Bind:
    """`bind(args, kwargs)` → the arguments by name. `method`: the first one is the object, which is
    the program and not an argument. Defaults are left out: what is asked is what is written.

    Never raises: arguments that do not fit are the function's own to refuse.
    """
    names, rest = _parameters(function)
    if method:
        names = names[1:]
    count, first = len(names), int(method)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        given = args[first:] if first else args
        if not given:
            return kwargs
        arguments = dict(zip(names, given))  # noqa: B905  strict= costs more than the zip
        if len(given) > count:
            arguments[rest] = list(given[count:])
        if kwargs:
            arguments.update(kwargs)
        return arguments

    return bind


def is_method(function: Callable[..., Any]) -> bool:
    """Whether a plain function is written inside a class and takes the object first."""
    home, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    if not home or home.endswith("<locals>"):
        return False
    names, _ = _parameters(function)
    return bool(names) and names[0] in ("self", "cls")


def _parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], str]:
    """Names of what may be given by position, and the name of `*args`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C, and it does not say
        return (), "args"
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = tuple(one.name for one in parameters if one.kind in positional)
    rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), "args")
    return names, rest
