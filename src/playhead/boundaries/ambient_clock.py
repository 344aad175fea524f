"""The wall clock, where Python reads it. Knows `time` and `datetime`; not what readings are for.

`datetime.now` is a C method of an immutable type. Its dict is reached through the garbage collector,
and the type's method cache is told by a setter that needs no permission: the types, and isinstance,
stay what they were, which a subclass in its place would not allow.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead import ambient
from playhead.boundaries.guest import NotAsExpected, Patches, need


def hook_time(module: ModuleType, patches: Patches) -> None:
    need(module, "time", "time_ns", "gmtime", "localtime", "ctime", "strftime", "perf_counter", "monotonic")
    real = module.time

    def wall() -> float:
        return ambient.read("time", real)

    def moment(convert: Callable[..., Any]) -> Callable[..., Any]:
        """gmtime(), localtime(), ctime(): without an argument they read the clock by themselves."""

        def converted(seconds: float | None = None) -> Any:
            return convert(ambient.read("time", real) if seconds is None else seconds)

        return converted

    def formatted(strftime: Callable[..., str]) -> Callable[..., str]:
        localtime = module.localtime.__wrapped__

        def strftimed(pattern: str, *given: Any) -> str:
            return strftime(pattern, *(given or (localtime(ambient.read("time", real)),)))

        return strftimed

    patches.replace(module, "time", lambda _: wall)
    patches.replace(module, "time_ns", lambda original: lambda: ambient.read("time_ns", original))
    for name in ("gmtime", "localtime", "ctime"):
        patches.replace(module, name, moment)
    patches.replace(module, "strftime", formatted)
    # Durations that a program prints. Libraries' own (event loops, locks, pools) stay real.
    for name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time"):
        patches.replace(module, name, _own(name))


def _own(kind: str) -> Callable[[Any], Any]:
    return lambda original: lambda: ambient.read(kind, original, own_code_only=True)


def hook_datetime(module: ModuleType, patches: Patches) -> None:
    moment, day = module.datetime, module.date
    real_now, real_day = moment.now, day.today
    if "now" not in _dict_of(moment) or "today" not in _dict_of(day):
        raise NotAsExpected("datetime's methods are not where they were")

    def now(cls: Any, tz: Any = None) -> Any:
        # As text: exact to the microsecond, and readable on the tape.
        taken = ambient.read("now", lambda: real_now(module.timezone.utc if tz is not None else None).isoformat())
        value = cls.fromisoformat(taken)
        return value if tz is None else value.astimezone(tz)

    def utcnow(cls: Any) -> Any:
        taken = ambient.read("now", lambda: real_now(module.timezone.utc).replace(tzinfo=None).isoformat())
        return cls.fromisoformat(taken)

    def today(cls: Any) -> Any:
        if issubclass(cls, moment):
            return cls.fromisoformat(ambient.read("now", lambda: real_now().isoformat()))
        return cls.fromisoformat(ambient.read("today", lambda: real_day().isoformat()))

    _graft(patches, moment, "now", classmethod(now))
    _graft(patches, moment, "utcnow", classmethod(utcnow))
    _graft(patches, day, "today", classmethod(today))


def _dict_of(kind: type) -> dict[str, Any]:
    found: dict[str, Any] = gc.get_referents(kind.__dict__)[0]
    return found


def _graft(patches: Patches, kind: type, name: str, made: Any) -> None:
    methods = _dict_of(kind)
    original = methods[name]
    methods[name] = made
    _modified(kind)

    def undo() -> None:
        if _dict_of(kind).get(name) is made:
            _dict_of(kind)[name] = original
            _modified(kind)

    patches.on_undo(undo)


def _modified(kind: type) -> None:
    """Forget what the interpreter has cached about the type (PyType_Modified), then clean up."""
    descriptor = type.__dict__["__abstractmethods__"]
    descriptor.__set__(kind, frozenset())
    descriptor.__delete__(kind)
