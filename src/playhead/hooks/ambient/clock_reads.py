"""Record every clock reading of Python code. Knows `time` and `datetime`; does not know how readings are used."""

from __future__ import annotations

import os
import sys

from playhead import clock, events
from playhead.hooks.guest import NotAsExpected, Patches, need, report
from playhead.hooks.replacements import Builtin, graft, replace_copies
from playhead.host.importing import before_import, forget
from playhead.host.later import Later
from playhead.host.lean import partial
from playhead.recording import ambient

TYPE_CHECKING = False
if TYPE_CHECKING:
    import warnings
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any
else:
    warnings = Later("warnings")


_STEADY = ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns")
_USED = ("process_time", "process_time_ns", "thread_time", "thread_time_ns")
# System clocks that are wall clocks; the others are monotonic.
_WALL_IDS = ("CLOCK_REALTIME", "CLOCK_TAI")
_STEADY_IDS = ("CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME", "CLOCK_UPTIME_RAW")

_TIME_MACHINE = "_time_machine"
_UTCNOW_IS_DEPRECATED = (
    "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. Use "
    "timezone-aware objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC)."
)


def hook_time(module: ModuleType, patches: Patches) -> None:
    # Before anything is replaced: time-machine must find the C functions that it expects.
    _give_way_to_time_machine(module, patches)
    _move_to_the_zone(module, patches)
    need(module, "time", "time_ns", "gmtime", "localtime", "ctime", "asctime", "strftime", *_STEADY)
    # Kept before the replacement, for the functions below that read the clock in C.
    real, localtime = module.time, module.localtime
    made: dict[int, Any] = {}

    def replace(name: str, wrap: Callable[[Any], Any]) -> None:
        original = vars(module)[name]
        patches.replace(module, name, wrap)
        made[id(original)] = vars(module)[name]

    # A reader and not a wrapper: programs read the clock in loops, and a reader is one frame.
    replace("time", lambda original: ambient.wall_reader("time", original))
    replace("time_ns", lambda original: ambient.wall_reader("time_ns", original))
    for name in ("gmtime", "localtime", "ctime"):
        replace(name, lambda original: Builtin(_moment(original, real)))
    replace("asctime", lambda original: Builtin(_formatted(original, 0, localtime, real)))
    replace("strftime", lambda original: Builtin(_formatted(original, 1, localtime, real)))
    for name in (*_STEADY, *_USED):
        if hasattr(module, name):
            replace(name, partial(ambient.steady_reader, name))
    for name, unit in (("clock_gettime", ""), ("clock_gettime_ns", "_ns")):
        if hasattr(module, name):
            replace(name, partial(_by_id, module, unit))
    # `from time import time` in modules that were imported before the recording started.
    replace_copies(patches, made)


def _move_to_the_zone(module: ModuleType, patches: Patches) -> None:
    """Set the recorded time zone, because the tape may come from a machine in another one.

    Sets it in the C library only and leaves `os.environ`, which belongs to the program, unchanged.
    """
    here = _zone()
    then = ambient.read_once("zone", hook_time.__code__, lambda: here)
    if not then or then == here or not hasattr(module, "tzset"):
        return

    def move(zone: str | None) -> None:
        if zone is None:
            os.unsetenv("TZ")
        else:
            # `putenv` reaches the C library only. `os.environ` would show the program a variable that it
            # never set, and its children would inherit it.
            os.putenv("TZ", zone)
        module.tzset()

    move(then)
    patches.on_undo(lambda: move(os.environ.get("TZ")))


def _zone() -> str | None:
    """Return the name of the time zone, such as `Europe/Berlin`; None if the system has only its table of offsets."""
    if (zone := os.environ.get("TZ")) is not None:
        return zone
    try:
        _, found, name = os.readlink("/etc/localtime").rpartition("zoneinfo/")
    except FileNotFoundError:
        return "UTC"
    except OSError:
        return None
    return name if found else None


def _moment(convert: Callable[..., Any], real: Callable[[], float]) -> Callable[..., Any]:
    """Wrap gmtime(), localtime() and ctime(), which read the clock in C if they get no argument."""

    def converted(seconds: float | None = None) -> Any:
        return convert(ambient.read("time", real) if seconds is None else seconds)

    return converted


def _formatted(
    write: Callable[..., str], before: int, localtime: Callable[..., Any], real: Callable[[], float]
) -> Callable[..., str]:
    """Wrap asctime() and strftime(pattern), which read the clock in C if they get no time to format."""

    def formatted(*given: Any) -> str:
        if len(given) > before:
            return write(*given)
        return write(*given, localtime(ambient.read("time", real)))

    return formatted


def _by_id(module: ModuleType, unit: str, original: Callable[[int], Any]) -> Builtin:
    kinds = dict.fromkeys(_ids(module, _WALL_IDS), f"time{unit}")
    kinds.update(dict.fromkeys(_ids(module, _STEADY_IDS), f"monotonic{unit}"))

    def clock_gettime(clk_id: int, /) -> Any:
        kind = kinds.get(clk_id)
        return original(clk_id) if kind is None else ambient.read(kind, lambda: original(clk_id))

    return Builtin(clock_gettime)


def _ids(module: ModuleType, names: tuple[str, ...]) -> list[int]:
    return [vars(module)[name] for name in names if name in vars(module)]


def hook_datetime(module: ModuleType, patches: Patches) -> None:
    _give_way_to_time_machine(module, patches)
    moment, day, utc = module.datetime, module.date, module.timezone.utc
    from_timestamp = vars(moment).get("fromtimestamp")
    if from_timestamp is None:
        raise NotAsExpected("datetime.fromtimestamp was replaced by another library")

    # `datetime.now` reads the clock in C, past `time.time`. `depth=2` skips the frame of `now`, so that the
    # reading is attributed to the caller's line.
    microseconds = ambient.wall_reader("now", lambda: clock.wall_ns() // 1000, depth=2)

    def now(cls: Any, tz: Any = None) -> Any:
        # The original classmethod, so that subclasses get their own type and the zone arithmetic stays C's.
        return from_timestamp.__get__(None, cls)(microseconds() / 1e6, tz)

    def utcnow(cls: Any) -> Any:
        # C warns in the original, which is not called; the caller's warning filters must see the same.
        if sys.version_info >= (3, 12):
            warnings.warn(_UTCNOW_IS_DEPRECATED, DeprecationWarning, stacklevel=2)
        at = from_timestamp.__get__(None, moment)(microseconds() / 1e6, utc)
        return cls(at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond, None)

    def today(cls: Any) -> Any:
        return cls.fromtimestamp(ambient.read("time", lambda: clock.wall_ns() / 1e9))

    # `datetime` is a C type: assigning an attribute raises TypeError, and a subclass in its place would break
    # isinstance and pickles.
    graft(patches, moment, "now", classmethod(_like(moment.now, now)))
    graft(patches, moment, "utcnow", classmethod(_like(moment.utcnow, utcnow)))
    graft(patches, day, "today", classmethod(_like(day.today, today)))


def _like(original: Any, made: Any) -> Any:
    made.__doc__, made.__qualname__ = original.__doc__, original.__qualname__
    return made


def _give_way_to_time_machine(module: ModuleType, patches: Patches) -> None:
    """Remove this hook before time-machine is imported.

    time-machine overwrites the C functions that it finds in `time` and `datetime` when it is imported. Our
    replacements are not C functions, so it would overwrite other memory. Where it is loaded, it controls the clock.
    """
    why = "time-machine replaces the clock in C; its times are not recorded"
    if _TIME_MACHINE in sys.modules:
        raise NotAsExpected(why)

    def give_way() -> None:
        patches.undo()
        report(events.HOLE, {"boundary": "clock", "what": module.__name__, "why": why})

    before_import(_TIME_MACHINE, give_way)
    patches.on_undo(lambda: forget(give_way))
