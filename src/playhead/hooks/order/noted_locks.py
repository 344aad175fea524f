"""Record the order in which lanes acquire each lock that the program makes.

While recording, such a lock has a type of our C extension (`host/native/locks.c`), which notes when another lane
acquires it: a hook in Python would cost ten times as much as the lock. In a replay it is Python's own lock, and `locks`
keeps the recorded order. Without the extension (no compiler), locks are not on the tape, and a replay guesses (see
`locks`).

Locks of the standard library and of most installed packages are left alone: a replay does not repeat most of the work
that they guard. Three kinds of package locks are recorded. Locks of database connections that threads share: a replay
makes the same statements, and their order decides which of them are prepared. Locks under which a package prints for
several threads. Locks under which a package passes objects from one thread to another. Of the standard library, the
locks of log files are recorded (`logging.FileHandler`): they decide the order of the lines in the file. Locks that C
code makes, and locks made before the run began, are left alone as well.

Knows `threading.Lock` and `RLock`, and our extension module for them.
"""

from __future__ import annotations

import os
import sys

from playhead.hooks.guest import Patches, need
from playhead.hooks.replacements import Builtin
from playhead.host import native_core
from playhead.host.later import Later
from playhead.recording import lanes, order_slot, points
from playhead.recording.where import OWNERS, PROGRAM, package_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType, ModuleType
    from typing import Any

    from playhead.hooks.order import locks
else:
    locks = Later("playhead.hooks.order.locks")  # only a replay loads it

# Packages whose locks guard a connection that several threads use.
_OF_CONNECTIONS = (
    *("/psycopg/", "/langgraph/checkpoint/postgres/", "/redis/connection.py", "/pymongo/lock.py"),
)
# A module that imports one of these makes such locks as well: SqliteSaver of LangGraph, SQLiteSession of OpenAI Agents.
_DRIVERS = ("sqlite3", "aiosqlite")
# Owners of the other locks that are recorded: the program (no package), and packages that pass objects from one thread
# to another or print for several threads.
_ORDERED = frozenset({None, "janus", "rich"})

# How names of locks continue after the lane, and what is counted. Log files have their own numbers, so that the other
# locks keep the names that they have on earlier tapes.
_OTHER, _LOG_FILE = "#", "#log"
_COUNTED = {_OTHER: "lock", _LOG_FILE: "log lock"}

_native: Any = None


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is threading."""
    need(module, "Lock", "RLock", "Condition")
    if points.active() is not None:
        native = _load()
        if native is None:
            return
        native.watch(_handed_over)
        lanes.own_thread = native.own
        patches.on_undo(_forget)
        points.note(lanes.MAIN, points.LOCKS)
    elif order_slot.active() is not None:
        lanes.own_thread = locks.own_thread
        patches.on_undo(_forget)
    else:
        return
    lanes.own_thread(lanes.MAIN)
    for name in ("Lock", "RLock"):
        patches.replace(module, name, _maker(name, module.Condition.__init__.__code__))


def _forget() -> None:
    lanes.own_thread = lanes.own_nothing
    if _native is not None:
        _native.watch(None)


def _load() -> Any:
    """Return the extension; None: this process has none, and its locks are not on the tape."""
    global _native  # noqa: PLW0603  one a process
    if _native is None and os.environ.get("PLAYHEAD_NOTE_LOCKS") != "0":
        _native = native_core.extension()
    return _native


def _handed_over(name: str, number: int, lane: lanes.Lane) -> None:
    """Record that a lane has acquired a lock that another lane had before. Called while the lock is held."""
    log = points.active()
    if log is not None:
        points.note(lane, f"{points.LOCK}:{name}", None, number)


def _maker(name: str, condition: CodeType) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        # Until 3.12 `threading.Lock` is a builtin function and `RLock` a function of Python.
        is_builtin = isinstance(original, type(len))

        def make(*args: Any, **kwargs: Any) -> Any:
            lock = None
            frame = sys._getframe(2 if is_builtin else 1)
            while frame.f_back is not None and (
                frame.f_code is condition or _is_generated(frame.f_code)
            ):
                frame = frame.f_back  # the caller that makes the condition or the object
            kind = _kind_of(frame)
            if kind is not None and not lanes.is_carried():
                if points.active() is not None and _native is not None:
                    lock = getattr(_native, name)()
                    lock.playhead_name = _next_name(kind)
                elif order_slot.active() is not None:
                    lock = original()
                    locks.know(lock, _next_name(kind))
            return original(*args, **kwargs) if lock is None else lock

        if isinstance(original, type):
            return _as_type(name, original, make)
        # `lock_class = threading.Lock` in the body of a class, as werkzeug has it, must not become a method.
        return Builtin(make) if is_builtin else make

    return wrap


def _as_type(name: str, original: type, make: Callable[[], Any]) -> Any:
    """Return a type that makes our locks. Since 3.13 `threading.Lock` is a type, and programs use it in isinstance."""

    class Kind(type):
        def __call__(cls) -> Any:
            return make()

        def __instancecheck__(cls, one: Any) -> bool:
            return isinstance(one, (original, getattr(_native, name, original)))

    return Kind(name, (), {})


def _next_name(kind: str) -> str:
    lane = lanes.current.get()
    return f"{lane.name}{kind}{lane.count(_COUNTED[kind])}"


def _is_generated(code: CodeType) -> bool:
    """Return whether this is the constructor that attrs or `dataclasses` has generated for a class. It has no file, so
    its caller tells whose class it is: trio makes a lock in such a constructor.
    """
    file = code.co_filename
    return code.co_name == "__init__" and (
        file == "<string>" or file.startswith("<attrs generated")
    )


def _kind_of(frame: FrameType) -> str | None:
    """Return the kind of the locks that this frame makes; None if their order is not recorded."""
    file = frame.f_code.co_filename
    if frame.f_code.co_name == "createLock" and frame.f_globals.get("__name__") == "logging":
        # `FileHandler` sets its file name before it makes the lock. Other handlers write to stdout or stderr, whose
        # order has points of its own (`log_handlers`), or to a service.
        return _LOG_FILE if hasattr(frame.f_locals.get("self"), "baseFilename") else None
    if OWNERS[file] != PROGRAM:
        return None
    is_ordered = (
        package_of(file) in _ORDERED
        or any(one in file for one in _OF_CONNECTIONS)
        or any(one in frame.f_globals for one in _DRIVERS)
    )
    return _OTHER if is_ordered else None
