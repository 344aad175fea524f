"""Any Python value to JSON and back. Knows named codecs; not events, not secrets, not files.

JSON's own types are written as they are. Everything else becomes an object with one key that
starts with `$` and names the codec: `{"$bytes": "…"}`, `{"$datetime": "…"}`. What has no codec is
kept as what it looks like (`$opaque`). `freeze` never raises and never runs a host's `__iter__`,
`items` or serialiser: a recorder is a guest. `thaw` rebuilds plain types, and classes only when
the caller names them: a tape is data from a stranger.
"""

from __future__ import annotations

import base64
import enum
import pathlib
from types import NoneType
from typing import TYPE_CHECKING, Any, Callable, Mapping

from playhead.later import Later

if TYPE_CHECKING:
    import dataclasses
    import datetime
    import decimal
    import uuid
else:
    dataclasses = Later("dataclasses")
    datetime = Later("datetime")
    decimal = Later("decimal")
    uuid = Later("uuid")

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_DEEPEST = 100  # deeper than that nobody reads, and CPython 3.10 recurses in C at some 1,000
_LONGEST_REPR = 2000
_MOST_KEYS = 10_000


class AnyKey(dict[str, bool]):
    """Keys that may be written as they stand: all but those that could be taken for a codec."""

    def __missing__(self, key: str) -> bool:
        if len(self) > _MOST_KEYS:
            self.clear()  # keys made of ids: do not grow with the run
        safe = self[key] = "$" not in key
        return safe


_ANY_KEY: Mapping[str, bool] = AnyKey()


def is_plain(value: Any, safe_keys: Mapping[str, bool] = _ANY_KEY, depth: int = 0) -> bool:
    """Whether JSON holds `value` exactly, so that it can be encoded as it stands.

    On the recorder's hot path: exact types only (a `str` subclass may be an enum), leaves are
    looked at in line, `safe_keys` answers by a dict look-up (see `redact.SafeKeys`), and no list
    of what was seen is kept (a cycle ends at `_DEEPEST`).
    """
    kind = type(value)
    if kind is dict:
        if depth > _DEEPEST:
            return False
        for key, item in value.items():
            if type(key) is not str or not safe_keys[key]:
                return False
            kind = type(item)
            if kind is str or kind is NoneType or kind is bool:
                continue
            if kind is int:
                if _INT_MIN <= item <= _INT_MAX:
                    continue
                return False
            if not is_plain(item, safe_keys, depth + 1):
                return False
        return True
    if kind is list:
        if depth > _DEEPEST:
            return False
        for item in value:
            if type(item) is not str and not is_plain(item, safe_keys, depth + 1):
                return False
        return True
    if kind is int:
        return bool(_INT_MIN <= value <= _INT_MAX)
    if kind is float:
        # Other magnitudes are spelled differently by different encoders (1e16, 1e+16).
        return bool(1e-4 <= value < 1e16 or -1e16 < value <= -1e-4 or value == 0)
    return kind is str or kind is bool or kind is NoneType


class Frozen:
    """A value that was frozen already, by another process, and is to be written as it stands."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def freeze(value: Any) -> Any:
    """`value` as plain JSON with `$` codecs. Cycles, hostile and bottomless objects included."""
    return _Freezer().freeze(value)


class _Freezer:
    """One walk; remembers the path from the root, to name a cycle by how far up it leads."""

    def __init__(self) -> None:
        self.path: list[int] = []

    def freeze(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return _text(value)
        if kind is bool or value is None:
            return value
        if kind is int:
            return value if _INT_MIN <= value <= _INT_MAX else {"$int": str(value)}
        if kind is float:
            return value if is_plain(value) else {"$float": float.__repr__(value)}
        if id(value) in self.path:
            return {"$cycle": len(self.path) - self.path.index(id(value))}
        if len(self.path) >= _DEEPEST:
            return opaque(value, why="too deep")
        self.path.append(id(value))
        try:
            return self._compound(value, kind)
        except Exception as error:  # a host's property or metaclass may raise anything at all
            return opaque(value, why=type(error).__name__)
        finally:
            self.path.pop()

    def _compound(self, value: Any, kind: type) -> Any:
        codec = _EXACT.get(kind) or _BY_NAME.get((kind.__module__, kind.__qualname__))
        if codec is not None:
            return codec(self, value)
        for base, codec in _SUBCLASS:
            if issubclass(kind, base):
                return codec(self, value)
        module = kind.__module__
        if any((base.__module__, base.__qualname__) == _DATETIME for base in kind.__mro__):
            return {"$datetime": value.isoformat()}
        if hasattr(kind, "__dataclass_fields__"):
            names = [field.name for field in dataclasses.fields(kind)]
            return self._fields("$dataclass", value, names)
        if hasattr(kind, "__attrs_attrs__"):
            return self._fields("$attrs", value, [a.name for a in kind.__attrs_attrs__])
        if hasattr(kind, "__pydantic_fields__"):
            return self._fields("$pydantic", value, list(kind.__pydantic_fields__))
        if module == "numpy" and hasattr(value, "dtype"):
            return self._numpy(value)
        return opaque(value)

    def _fields(self, codec: str, value: Any, names: list[str]) -> Any:
        """Fields by name, read from the object itself: no serialiser of the host's is run."""
        fields = {}
        for name in names:
            try:
                fields[name] = self.freeze(getattr(value, name))
            except AttributeError:
                continue  # a field that was never set (init=False, slots) has no value to keep
        return {codec: type_name(type(value)), "fields": fields}

    def _numpy(self, value: Any) -> Any:
        if getattr(value, "shape", None) == ():
            return {"$numpy": str(value.dtype), "value": self.freeze(value.item())}
        raw = base64.b64encode(value.tobytes()).decode()
        return {"$ndarray": str(value.dtype), "shape": list(value.shape), "data": raw}

    def mapping(self, value: dict[Any, Any]) -> Any:
        # dict.items, not value.items: a subclass may have overridden it with something endless.
        pairs = [(key, self.freeze(item)) for key, item in list(dict.items(value))]
        if all(type(key) is str and _text(key) is key for key, _ in pairs):
            frozen = dict(pairs)
            return {"$dict": frozen} if any(key[:1] == "$" for key in frozen) else frozen
        return {"$map": [[self.freeze(key), item] for key, item in pairs]}

    def sequence(self, value: list[Any]) -> Any:
        return [self.freeze(item) for item in list.__iter__(value)]

    def tuple(self, value: tuple[Any, ...]) -> Any:
        items = [self.freeze(item) for item in tuple.__iter__(value)]
        names = getattr(type(value), "_fields", None)
        if isinstance(names, tuple) and len(names) == len(items):
            return {"$namedtuple": type_name(type(value)), "fields": dict(zip(names, items))}
        return {"$tuple": items}

    def set(self, value: Any) -> Any:
        # Sorted by their frozen spelling: a set has no order, and equal sets must look equal.
        items = sorted((self.freeze(item) for item in value), key=repr)
        return {"$frozenset" if isinstance(value, frozenset) else "$set": items}

    def enum(self, value: enum.Enum) -> Any:
        frozen = self.freeze(value._value_)
        return {"$enum": type_name(type(value)), "name": value._name_, "value": frozen}

    def exception(self, value: BaseException) -> Any:
        frozen: dict[str, Any] = {
            "$exception": type_name(type(value)),
            "message": safe_str(value),
            "args": [self.freeze(item) for item in value.args],
        }
        if isinstance(value, OSError) and value.errno is not None:
            frozen["errno"] = value.errno
            if value.filename is not None:  # not among the args that Python keeps
                frozen["filename"] = self.freeze(value.filename)
        state = {k: self.freeze(v) for k, v in vars(value).items() if isinstance(k, str)}
        if state:
            frozen["state"] = state
        if value.__traceback__ is not None:
            frozen["traceback"] = traceback_lines(value)
        cause = value.__cause__ or (None if value.__suppress_context__ else value.__context__)
        if cause is not None:
            frozen["cause"] = self.freeze(cause)
        return frozen


def traceback_lines(error: BaseException) -> list[str]:
    """`file:line function`, outermost first, at most the 50 innermost."""
    lines = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        lines.append(f"{code.co_filename}:{step.tb_lineno} {code.co_name}")
        step = step.tb_next
    return lines[-50:]


def type_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def safe_str(value: object) -> str:
    """`str(value)`, whatever the host's `__str__` does."""
    try:
        text = str(value)
    except Exception as error:
        return f"<{type(value).__name__}: __str__ raised {type(error).__name__}>"
    return _writable(text)


def opaque(value: object, *, why: str | None = None) -> dict[str, Any]:
    """What a value with no codec looks like from outside."""
    try:
        looks = repr(value)
    except Exception as error:
        looks = f"<__repr__ raised {type(error).__name__}>"
    shown = _writable(looks[:_LONGEST_REPR])
    frozen: dict[str, Any] = {"$opaque": type_name(type(value)), "repr": shown}
    if len(looks) > _LONGEST_REPR:
        frozen["repr_length"] = len(looks)
    if why:
        frozen["why"] = why
    return frozen


def _writable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _text(value: str) -> Any:
    """Text that UTF-8 can hold stays; lone surrogates (file names, cut emoji) keep their bytes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"$text": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()}
    return value


_Codec = Callable[[_Freezer, Any], Any]

_EXACT: dict[type, _Codec] = {
    dict: _Freezer.mapping,
    list: _Freezer.sequence,
    tuple: _Freezer.tuple,
    bytes: lambda _, v: {"$bytes": base64.b64encode(v).decode()},
    bytearray: lambda _, v: {"$bytearray": base64.b64encode(v).decode()},
    memoryview: lambda _, v: {"$bytes": base64.b64encode(v).decode()},
    complex: lambda _, v: {"$complex": [repr(v.real), repr(v.imag)]},
    set: _Freezer.set,
    frozenset: _Freezer.set,
    Frozen: lambda _, v: v.value,
}
# Types of modules that the host may never load: a value of theirs is known by its name.
_DATETIME = ("datetime", "datetime")
_BY_NAME: dict[tuple[str, str], _Codec] = {
    _DATETIME: lambda _, v: {"$datetime": v.isoformat()},
    ("datetime", "date"): lambda _, v: {"$date": v.isoformat()},
    ("datetime", "time"): lambda _, v: {"$time": v.isoformat()},
    ("datetime", "timedelta"): lambda _, v: {"$timedelta": [v.days, v.seconds, v.microseconds]},
    ("decimal", "Decimal"): lambda _, v: {"$decimal": str(v)},
    ("uuid", "UUID"): lambda _, v: {"$uuid": str(v)},
}
_SUBCLASS: tuple[tuple[type, _Codec], ...] = (
    (enum.Enum, _Freezer.enum),
    (BaseException, _Freezer.exception),
    (pathlib.PurePath, lambda _, v: {"$path": _writable(str(v))}),
    (bool, lambda _, v: bool(v)),
    (str, lambda _, v: _text(str.__str__(v))),
    (int, lambda f, v: f.freeze(int.__int__(v))),
    (float, lambda f, v: f.freeze(float.__float__(v))),
    (bytes, lambda _, v: {"$bytes": base64.b64encode(bytes(v)).decode()}),
    (dict, _Freezer.mapping),
    (list, _Freezer.sequence),
    (tuple, _Freezer.tuple),
    (set, _Freezer.set),
    (frozenset, _Freezer.set),
)

Types = Mapping[str, type]


def thaw(frozen: Any, types: Types | None = None) -> Any:
    """The value back. Classes are rebuilt only if `types` names them (`module:qualname` → class);
    otherwise their fields come back as a dict. `$opaque` comes back as its dict: it is no value.
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
        return build(frozen[codec], types)
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
    "$int": lambda v, _: int(v),
    "$float": lambda v, _: float(v),
    "$datetime": lambda v, _: datetime.datetime.fromisoformat(v),
    "$date": lambda v, _: datetime.date.fromisoformat(v),
    "$time": lambda v, _: datetime.time.fromisoformat(v),
    "$timedelta": lambda v, _: datetime.timedelta(*v),
    "$decimal": lambda v, _: decimal.Decimal(v),
    "$uuid": lambda v, _: uuid.UUID(v),
    "$path": lambda v, _: pathlib.Path(v),
    "$complex": lambda v, _: complex(float(v[0]), float(v[1])),
    "$tuple": lambda v, t: tuple(thaw(item, t) for item in v),
    "$set": lambda v, t: {thaw(item, t) for item in v},
    "$frozenset": lambda v, t: frozenset(thaw(item, t) for item in v),
    "$dict": lambda v, t: {key: thaw(item, t) for key, item in v.items()},
    "$map": lambda v, t: {thaw(key, t): thaw(item, t) for key, item in v},
}
