"""Rebuild the exceptions of taped calls. Imports nothing that a tape names: it uses only classes of modules that the
program has loaded.
"""

from __future__ import annotations

import sys
from typing import Any

from playhead.encoding.values import thaw


class TapedError(Exception):
    """Replaces an exception whose class this program does not have; the message names the class."""

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(f"{type_name}: {message}")
        self.type_name = type_name


def rebuild(frozen: Any) -> BaseException | None:
    if not isinstance(frozen, dict) or "$exception" not in frozen:
        return None
    name, message = str(frozen["$exception"]), str(frozen.get("message", ""))
    kind = _find(name)
    if kind is None:
        return TapedError(name.rpartition(":")[2], message)
    args = thaw(frozen.get("args"))
    arguments = tuple(args) if isinstance(args, list) else (message,)
    try:
        error = kind.__new__(kind, *arguments)
        error.args = arguments
        state = thaw(frozen.get("state") or {})
        if isinstance(state, dict):
            error.__dict__.update(state)
    except Exception:  # noqa: BLE001  whatever a stranger's class does: the error is reported all the same
        return TapedError(name.rpartition(":")[2], message)
    cause = rebuild(frozen.get("cause"))
    if cause is not None:
        error.__cause__ = cause
    return error


def _find(name: str) -> type[BaseException] | None:
    module_name, _, path = name.partition(":")
    found: Any = sys.modules.get(module_name)
    for part in path.split("."):
        if found is None:
            return None
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None
