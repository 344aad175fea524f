"""Encode any Python value as JSON and decode it. Knows named codecs; does not know events, secrets or files.

JSON's own types are written unchanged. Everything else becomes an object with one key that starts with `$` and names
the codec: `{"$bytes": "…"}`, `{"$datetime": "…"}`. A value without a codec is stored as its repr (`$opaque`). `freeze`
never raises and never runs a host's `__iter__`, `items` or serialiser, because a recorder is a guest. `thaw` rebuilds
plain types, and classes only if the caller names them, because a tape is untrusted data.
"""

from __future__ import annotations

import sys

from playhead.encoding.plain import DEEPEST, INT_MAX, INT_MIN, is_plain
from playhead.host.interrupts import is_interrupt
from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import base64
    import dataclasses
    import datetime
    import decimal
    import enum
    import pathlib
    import uuid
    from collections.abc import Callable, Mapping
    from typing import Any

    _Codec = Callable[["_Freezer", Any], Any]

    Types = Mapping[str, type]
else:
    base64 = Later("base64")
    dataclasses = Later("dataclasses")
    datetime = Later("datetime")
    decimal = Later("decimal")
    pathlib = Later("pathlib")
    uuid = Later("uuid")

_LONGEST_REPR = 2000
# A few lists that contain each other several times expand to more than any tape can hold.
_MOST_PARTS = 5_000_000


class Frozen:
    """A value that another process has frozen already; it is written unchanged."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def freeze(value: Any) -> Any:
    """Return `value` as plain JSON with `$` codecs. Handles cycles, hostile objects and endless nesting."""
    return _Freezer().freeze(value)


class _Freezer:
    """One pass over a value. Remembers the path from the root, to encode a cycle as the number of levels it
    leads up.
    """

    def __init__(self) -> None:
        self.path: list[int] = []
        self.left = _MOST_PARTS

    def freeze(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return _text(value)
        if kind is bool or value is None:
            return value
        if kind is int:
            return value if INT_MIN <= value <= INT_MAX else {"$int": _digits(value)}
        if kind is float:
            return value if is_plain(value) else {"$float": float.__repr__(value)}
        if id(value) in self.path:
            return {"$cycle": len(self.path) - self.path.index(id(value))}
        self.left -= 1
        if len(self.path) >= DEEPEST or self.left < 0:
            return opaque(value, why="too deep" if self.left >= 0 else "too large")
        self.path.append(id(value))
        try:
            return self._compound(value, kind)
        except Exception as error:  # a host's property or metaclass may raise anything at all
            if is_interrupt(error):
                raise
            return opaque(value, why=type(error).__name__)
        finally:
            self.path.pop()

    def _compound(self, value: Any, kind: type) -> Any:
        codec = _EXACT.get(kind)
        if codec is not None:
            return codec(self, value)
        codec = _BY_NAME.get((kind.__module__, kind.__qualname__))
        if codec is not None:
            return codec(self, value)
        for module, name, codec in _LOADED:
            known = getattr(sys.modules.get(module), name, None)
            if known is not None and issubclass(kind, known):
                return codec(self, value)
        for base, codec in _SUBCLASS:
            if issubclass(kind, base):
                return codec(self, value)
        if any((base.__module__, base.__qualname__) == _DATETIME for base in kind.__mro__):
            return {"$datetime": value.isoformat()}
        if hasattr(kind, "__dataclass_fields__"):
            names = [field.name for field in dataclasses.fields(kind)]
            return self._fields("$dataclass", value, names)
        if hasattr(kind, "__attrs_attrs__"):
            return self._fields("$attrs", value, [a.name for a in kind.__attrs_attrs__])
        if hasattr(kind, "__pydantic_fields__"):
            extra = getattr(value, "__pydantic_extra__", None) or {}
            return self._fields("$pydantic", value, [*kind.__pydantic_fields__, *extra])
        if hasattr(kind, "__struct_fields__"):
            return self._fields("$struct", value, list(kind.__struct_fields__))
        if kind.__module__ == "numpy" and hasattr(value, "dtype"):
            return self._numpy(value)
        return opaque(value)

    def _fields(self, codec: str, value: Any, names: list[str]) -> Any:
        """Return the fields by name, read from the object itself: the host's serialisers are not run."""
        fields = {}
        for name in names:
            try:
                fields[name] = self.freeze(getattr(value, name))
            except AttributeError:
                continue  # a field that was never set (init=False, slots) has no value to keep
        return {codec: type_name(type(value)), "fields": fields}

    def _numpy(self, value: Any) -> Any:
        kind = str(value.dtype)
        if value.shape == ():
            item = value.item()
            return (
                opaque(value)
                if type(item) is type(value)
                else {"$numpy": kind, "value": self.freeze(item)}
            )
        if value.dtype.hasobject or value.dtype.kind in "SU":
            return {
                "$ndarray": kind,
                "shape": list(value.shape),
                "items": self.freeze(value.tolist()),
            }
        raw = base64.b64encode(value.tobytes()).decode()
        return {"$ndarray": kind, "shape": list(value.shape), "data": raw}

    def mapping(self, value: dict[Any, Any]) -> Any:
        # dict.items, not value.items: a subclass may have overridden it with something endless.
        pairs = [(key, self.freeze(item)) for key, item in list(dict.items(value))]
        if all(isinstance(key, str) and _is_text(key) for key, _ in pairs):
            frozen = {str.__str__(key): item for key, item in pairs}
            return {"$dict": frozen} if any(key[:1] == "$" for key in frozen) else frozen
        return {"$map": [[self.freeze(key), item] for key, item in pairs]}

    def sequence(self, value: list[Any]) -> Any:
        return [self.freeze(item) for item in list.__iter__(value)]

    def tuple(self, value: tuple[Any, ...]) -> Any:
        items = [self.freeze(item) for item in tuple.__iter__(value)]
        names = getattr(type(value), "_fields", None)
        if isinstance(names, tuple) and len(names) == len(items):
            return {
                "$namedtuple": type_name(type(value)),
                "fields": dict(zip(names, items, strict=True)),
            }
        return {"$tuple": items}

    def set(self, value: Any) -> Any:
        # Sorted by their frozen form: a set has no order, and equal sets must look equal.
        kind = set if issubclass(type(value), set) else frozenset
        items = sorted((self.freeze(item) for item in kind.__iter__(value)), key=repr)
        return {"$set" if kind is set else "$frozenset": items}

    def enum(self, value: enum.Enum) -> Any:
        frozen = self.freeze(value._value_)
        return {"$enum": type_name(type(value)), "name": value._name_, "value": frozen}

    def exception(self, value: BaseException) -> Any:
        frozen: dict[str, Any] = {
            "$exception": type_name(type(value)),
            "message": safe_str(value),
            "args": [self.freeze(item) for item in _ARGS.__get__(value)],
        }
        if isinstance(value, OSError) and value.errno is not None:
            frozen["errno"] = value.errno
            if value.filename is not None:  # not among the args that Python keeps
                frozen["filename"] = self.freeze(value.filename)
        if vars(value):
            frozen["state"] = self.mapping(vars(value))
        if value.__traceback__ is not None:
            frozen["traceback"] = traceback_lines(value)
        cause = value.__cause__ or (None if value.__suppress_context__ else value.__context__)
        if cause is not None:
            frozen["cause"] = self.freeze(cause)
        return frozen


def traceback_lines(error: BaseException) -> list[str]:
    """Return `file:line function` for each frame, outermost first, at most the 50 innermost."""
    lines = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        lines.append(_writable(f"{code.co_filename}:{step.tb_lineno} {code.co_name}"))
        step = step.tb_next
    return lines[-50:]


_ARGS: Any = BaseException.args  # not value.args: a subclass may have overridden it
_NAME: Any = type.__dict__["__qualname__"]
_MODULE: Any = type.__dict__["__module__"]


def type_name(kind: type) -> str:
    """Return `module:qualname`, read with `type` itself: a metaclass may return anything."""
    try:
        module = _MODULE.__get__(kind)
    except AttributeError:  # a class without this attribute
        module = None
    return _writable(f"{module if type(module) is str else '?'}:{_NAME.__get__(kind)}")


def safe_str(value: object) -> str:
    """Return `str(value)`; never raises, whatever the host's `__str__` does."""
    try:
        text = str(value)
    except Exception as error:
        if is_interrupt(error):
            raise
        return f"<{type_name(type(value))}: __str__ raised {type(error).__name__}>"
    return _writable(text)


def opaque(value: object, *, why: str | None = None) -> dict[str, Any]:
    """Return the description of a value without a codec."""
    try:
        # Without the repr of a list that is too deep or too large: the repr would be as large.
        looks = str.__str__(repr(value)) if why not in ("too deep", "too large") else "<not shown>"
    except Exception as error:
        if is_interrupt(error):
            raise
        looks = f"<__repr__ raised {type(error).__name__}>"
    shown = _writable(looks[:_LONGEST_REPR])
    frozen: dict[str, Any] = {"$opaque": type_name(type(value)), "repr": shown}
    if len(looks) > _LONGEST_REPR:
        frozen["repr_length"] = len(looks)
    if why:
        frozen["why"] = why
    return frozen


def _writable(text: str) -> str:
    return str.encode(text, "utf-8", "backslashreplace").decode()


def _digits(value: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError:  # more digits than Python converts
        return hex(value)


def _is_text(key: str) -> bool:
    """Return whether UTF-8 can encode the text. Does not call methods of a subclass."""
    try:
        str.encode(key)
    except UnicodeEncodeError:
        return False
    return True


def _text(value: str) -> Any:
    """Return text that UTF-8 can encode unchanged; for lone surrogates (file names, cut emoji) keep the bytes."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"$text": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()}
    return value


_EXACT: dict[type, _Codec] = {
    dict: _Freezer.mapping,
    list: _Freezer.sequence,
    tuple: _Freezer.tuple,
    bytes: lambda _, v: {"$bytes": base64.b64encode(v).decode()},
    bytearray: lambda _, v: {"$bytearray": base64.b64encode(v).decode()},
    memoryview: lambda _, v: {"$bytes": base64.b64encode(v.tobytes()).decode()},
    complex: lambda _, v: {"$complex": [repr(v.real), repr(v.imag)]},
    set: _Freezer.set,
    frozenset: _Freezer.set,
    Frozen: lambda _, v: v.value,
}
# Types of modules that the host may never load: their values are recognised by the name of the type.
_DATETIME = ("datetime", "datetime")
_BY_NAME: dict[tuple[str, str], _Codec] = {
    _DATETIME: lambda _, v: {"$datetime": v.isoformat()},
    ("datetime", "date"): lambda _, v: {"$date": v.isoformat()},
    ("datetime", "time"): lambda _, v: {"$time": v.isoformat()},
    ("datetime", "timedelta"): lambda _, v: {"$timedelta": [v.days, v.seconds, v.microseconds]},
    ("decimal", "Decimal"): lambda _, v: {"$decimal": str(v)},
    ("uuid", "UUID"): lambda _, v: {"$uuid": str(v)},
}
# Types that exist only if their module is loaded; checked in this order, before all others.
_LOADED: tuple[tuple[str, str, _Codec], ...] = (
    ("enum", "Enum", _Freezer.enum),
    ("pathlib", "PurePath", lambda _, v: {"$path": _text(str(v))}),
)
_SUBCLASS: tuple[tuple[type, _Codec], ...] = (
    (BaseException, _Freezer.exception),
    (bool, lambda _, v: bool(v)),
    (str, lambda _, v: _text(str.__str__(v))),
    (int, lambda f, v: f.freeze(int.__int__(v))),
    (float, lambda f, v: f.freeze(float.__float__(v))),
    (bytes, lambda _, v: {"$bytes": base64.b64encode(v).decode()}),
    (dict, _Freezer.mapping),
    (list, _Freezer.sequence),
    (tuple, _Freezer.tuple),
    (set, _Freezer.set),
    (frozenset, _Freezer.set),
)


def thaw(frozen: Any, types: Types | None = None) -> Any:
    """Rebuild the value. Classes are rebuilt only if `types` names them (`module:qualname` → class); otherwise
    their fields are returned as a dict. `$opaque` is returned as its dict, because it has no value.
    """
    types = types or {}
    if type(frozen) is list:
        return [thaw(item, types) for item in frozen]
    if type(frozen) is not dict:
        return frozen
    codec = next(iter(frozen), "")
    if codec[:1] != "$":
        return {key: thaw(item, types) for key, item in frozen.items()}
    build = _THAW.get(codec)
    if build is not None:
        try:
            return build(frozen[codec], types)
        except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError):
            return frozen  # an untrusted tape, or a secret was removed from the middle
    fields = frozen.get("fields")
    if isinstance(fields, dict):
        kept = {key: thaw(item, types) for key, item in fields.items()}
        kind = types.get(str(frozen[codec]))
        return kept if kind is None else kind(**kept)
    if codec in ("$enum", "$numpy"):
        kind = types.get(str(frozen[codec]))
        plain = thaw(frozen.get("value"), types)
        return plain if kind is None else kind(plain)
    return frozen


_THAW: dict[str, Callable[[Any, Types], Any]] = {
    "$bytes": lambda v, _: base64.b64decode(v),
    "$bytearray": lambda v, _: bytearray(base64.b64decode(v)),
    "$text": lambda v, _: base64.b64decode(v).decode("utf-8", "surrogatepass"),
    "$int": lambda v, _: int(v, 0),
    "$float": lambda v, _: float(v),
    "$datetime": lambda v, _: datetime.datetime.fromisoformat(v),
    "$date": lambda v, _: datetime.date.fromisoformat(v),
    "$time": lambda v, _: datetime.time.fromisoformat(v),
    "$timedelta": lambda v, _: datetime.timedelta(*v),
    "$decimal": lambda v, _: decimal.Decimal(v),
    "$uuid": lambda v, _: uuid.UUID(v),
    "$path": lambda v, _: pathlib.Path(thaw(v)),
    "$complex": lambda v, _: complex(float(v[0]), float(v[1])),
    "$tuple": lambda v, t: tuple(thaw(item, t) for item in v),
    "$set": lambda v, t: {thaw(item, t) for item in v},
    "$frozenset": lambda v, t: frozenset(thaw(item, t) for item in v),
    "$dict": lambda v, t: {key: thaw(item, t) for key, item in v.items()},
    "$map": lambda v, t: {thaw(key, t): thaw(item, t) for key, item in v},
}
