"""Rebuild the results and exceptions of taped calls. Knows named types; does not know any framework.

A tape is untrusted data. Classes are rebuilt only if the caller names them, from their fields and without running
a constructor. Exceptions are rebuilt only as builtins, as named classes, or (for HTTP clients and processes) as
exception classes whose module the program has loaded already: nothing is imported for a tape. A value that cannot
be rebuilt is a divergence with the reason, never a look-alike: replay fails closed.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from playhead.encoding.values import thaw, type_name
from playhead.errors import Divergence, PlayheadError
from playhead.recording.deck import Crossing, Taped

Named = Mapping[str, type]

_CLASSES = ("$dataclass", "$pydantic", "$attrs", "$namedtuple", "$enum")
_NO_VALUE = ("$opaque", "$cycle", "$ndarray", "$exception")


def serve(crossing: Crossing, named: Named, build: Callable[[Any], Any] | None = None) -> Any:
    """Return the taped value or raise the taped exception; `build` makes a framework's object of the plain
    value.
    """
    taped = _taped(crossing)
    if taped.how != "returned":
        fail(crossing, named)
    frozen = taped.value if taped.frozen is None else taped.frozen
    value = value_of(frozen, named, what=crossing.call.name)
    crossing.returned(value)
    return value if build is None else build(value)


def fail(crossing: Crossing, named: Named) -> NoReturn:
    """Raise the taped exception: as a class of `named` if it is one, else as the mode has rebuilt it."""
    taped = _taped(crossing)
    if taped.dies is not None:
        crossing.cut()  # the recorded run was killed here, and so is this one
    frozen = taped.frozen_error
    known = isinstance(frozen, dict) and str(frozen.get("$exception")) in named
    error = error_of(frozen if known else taped.error, named, what=crossing.call.name)
    crossing.raised(error)
    raise error


def value_of(frozen: Any, named: Named, *, what: str) -> Any:
    """Rebuild a value from its frozen form; a Divergence if a part of it cannot be rebuilt."""
    problem = next(_unbuildable(frozen, named), None)
    if problem is not None:
        raise Divergence(
            f"The taped result of {what} cannot be served: {problem}. "
            f"Let it run for real (`--live {what}`), or name its class in the tool's annotations."
        )
    return thaw(frozen, {name: _bare(kind) for name, kind in named.items()})


def error_of(frozen: Any, named: Named, *, what: str) -> BaseException:
    """Rebuild an exception; a Divergence if its class is neither a builtin nor named."""
    if isinstance(frozen, BaseException):
        return frozen
    facts = frozen if isinstance(frozen, dict) else {}
    name = str(facts.get("$exception", ""))
    kind = named.get(name)
    if kind is None and name.startswith("builtins:"):
        kind = getattr(builtins, name.partition(":")[2], None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise Divergence(
            f"The taped call of {what} raised {name.replace(':', '.') or 'something unknown'} "
            f"({facts.get('message', 'no message')}), a class that the tool does not name. "
            f"Let it run for real: `--live {what}`."
        )
    args = [_argument(item, named, what) for item in facts.get("args") or ()]
    if isinstance(facts.get("filename"), str) and issubclass(kind, OSError) and len(args) == 2:
        args.append(facts["filename"])
    made = _exception(kind, args)
    for key, item in (facts.get("state") or {}).items():
        made.__dict__[key] = _argument(item, named, what)
    return made


def classes(*kinds: Any) -> dict[str, type]:
    """Return a table of the classes that a hook names. Classes that this version of a library lacks are left out."""
    return {type_name(kind): kind for kind in kinds if isinstance(kind, type)}


def classes_of(function: Any) -> dict[str, type]:
    """Return the classes that a function names: those in its module, and those in its return annotation."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    function = getattr(function, "func", function)  # functools.partial
    function = getattr(function, "__func__", function)
    named = classes(*getattr(function, "__globals__", {}).values())
    for kind in _mentioned(_hints(function).get("return"), set()):
        named[type_name(kind)] = kind
    return named


def _taped(crossing: Crossing) -> Taped:
    if crossing.taped is None:
        raise AssertionError("only a taped crossing is served")
    return crossing.taped


def _exception(kind: type[BaseException], args: Iterable[Any]) -> BaseException:
    # Other classes may run any code in `__init__`, and may take other arguments than those in `args`. Builtin
    # classes need `__init__`: UnicodeDecodeError sets its attributes there.
    if kind.__module__ == "builtins":
        try:
            return kind(*args)
        except TypeError:
            return kind.__new__(kind)
    made = kind.__new__(kind, *args)
    made.args = tuple(args)
    return made


def _argument(frozen: Any, named: Named, what: str) -> Any:
    """Rebuild an argument of an exception. Exceptions in a group are rebuilt; other values stay frozen if they
    cannot be rebuilt.
    """
    if isinstance(frozen, list):
        return [_argument(item, named, what) for item in frozen]
    if isinstance(frozen, dict) and "$exception" in frozen:
        return error_of(frozen, named, what=what)
    if next(_unbuildable(frozen, named), None) is not None:
        return frozen
    return value_of(frozen, named, what=what)


def _unbuildable(frozen: Any, named: Named) -> Iterator[str]:
    """Yield every reason why the value of `frozen` cannot be rebuilt."""
    if isinstance(frozen, list):
        for item in frozen:
            yield from _unbuildable(item, named)
    if not isinstance(frozen, dict):
        return
    codec = next(iter(frozen), "")
    if codec in _NO_VALUE:
        shown = str(frozen[codec]).replace(":", ".")
        yield (
            f"it holds {shown}, which has no codec"
            if codec == "$opaque"
            else f"it holds a {codec[1:]}"
        )
    elif codec in _CLASSES and str(frozen[codec]) not in named:
        shown = str(frozen[codec]).replace(":", ".")
        yield f"it holds {shown}, a class that the program does not name"
    elif codec == "$map":
        yield from _unbuildable([part for pair in frozen[codec] for part in pair], named)
    else:
        inner = (
            frozen.get("fields")
            if codec in _CLASSES
            else frozen.get(codec)
            if codec[:1] == "$"
            else frozen
        )
        for item in inner.values() if isinstance(inner, dict) else (inner,):
            yield from _unbuildable(item, named)


def _bare(kind: type) -> Any:
    """Return the function with which `thaw` makes an instance from its fields, without validators and `__init__`."""
    construct = getattr(kind, "model_construct", None)
    if construct is not None:
        return construct
    if issubclass(kind, (enum.Enum, tuple)) or not (
        dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__")
    ):
        return kind

    def build(**fields: Any) -> Any:
        made = object.__new__(kind)
        for name, item in fields.items():
            object.__setattr__(made, name, item)
        return made

    return build


def _hints(thing: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(thing)
    except Exception:  # noqa: BLE001  forward references that only a type checker can follow
        return {}


def _mentioned(hint: Any, seen: set[Any]) -> Iterator[type]:
    """Yield the classes in an annotation: for list[Order], `Order` and the classes of Order's fields."""
    if isinstance(hint, type) and not typing.get_args(hint):
        if hint in seen or hint.__module__ == "builtins":
            return
        seen.add(hint)
        yield hint
        if (
            dataclasses.is_dataclass(hint)
            or hasattr(hint, "__pydantic_fields__")
            or hasattr(hint, "__attrs_attrs__")
        ):
            for inner in _hints(hint).values():
                yield from _mentioned(inner, seen)
    origin = typing.get_origin(hint)
    for part in (origin, *typing.get_args(hint)):
        if part is not None:
            yield from _mentioned(part, seen)


_DEEPEST = 8


def revived(frozen: Any, name: str, depth: int = 0) -> BaseException:
    """Rebuild the exception from its frozen form, with its causes; a Divergence if that is impossible."""
    if isinstance(frozen, BaseException):
        return frozen
    try:
        error = error_of(frozen, LOADED, what=name)
    except Divergence as problem:
        return problem
    cause = frozen.get("cause")
    if isinstance(cause, dict) and depth < _DEEPEST:
        earlier = revived(cause, name, depth + 1)
        error.__cause__ = None if isinstance(earlier, Divergence) else earlier
    return error


class _Loaded(Mapping[str, type]):
    """Every exception class that the program has loaded, by `module:qualname`."""

    def __getitem__(self, name: str) -> type:
        module, _, path = name.partition(":")
        found: Any = sys.modules.get(module)
        for part in path.split("."):
            found = getattr(found, part, None)
        if not isinstance(found, type) or not issubclass(found, BaseException):
            raise KeyError(name)
        if issubclass(found, PlayheadError):
            raise KeyError(name)  # a replay's own error is never a taped answer
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(())  # looked up by name only

    def __len__(self) -> int:
        return 0


LOADED = _Loaded()
