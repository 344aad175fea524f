"""Keep the order in which several threads execute SQLite statements.

Threads that share a database file wait for each other inside SQLite, in C. So the order is that in which their
statements are done. In a replay a thread begins a statement at the place where it was done in the recorded run. So it
never finds the database locked by a thread that came later.

Knows the connections and cursors of `sqlite3`; libraries on top of it (aiosqlite, SQLAlchemy) end there.
"""

from __future__ import annotations

import _thread

from playhead.hooks.guest import Patches, need
from playhead.hooks.replacements import graft
from playhead.recording import lanes, order_slot, points

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_STATEMENTS = ("execute", "executemany", "executescript")
_ENDS = ("commit", "rollback", "__exit__")
# Threads that are in a statement. In some versions of Python, a connection's method calls that of its cursor.
_busy: set[int] = set()


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is sqlite3."""
    need(module, "Connection", "Cursor")
    for kind, names in ((module.Connection, _STATEMENTS + _ENDS), (module.Cursor, _STATEMENTS)):
        need(kind, *names)
        for name in names:
            graft(patches, kind, name, _in_order(kind.__dict__[name]))


def _in_order(original: Callable[..., Any]) -> Callable[..., Any]:
    def statement(self: Any, *args: Any, **named: Any) -> Any:
        # A program without threads decides the order of its statements itself.
        if not lanes.have_threads() or not order_slot.is_kept():
            return original(self, *args, **named)
        me = _thread.get_ident()
        if me in _busy:
            return original(self, *args, **named)
        _busy.add(me)
        try:
            order_slot.wait_for(points.STATEMENT)
            return original(self, *args, **named)
        finally:
            _busy.discard(me)
            order_slot.acted()
            order_slot.happened(points.STATEMENT)

    return statement
