"""Record the warnings that a tool issues and the filters that it changes, and repeat both in a replay.

Python prints a warning once for each line of code, and again after the filters have changed. So a tool's warnings
decide which later warnings are printed, but a replay does not run the tool. They are recorded as pieces of the
tool's call, in the stream `warnings`. The text that the tool printed is in its stream `stderr`. Knows private
functions of `warnings` (CPython 3.10 to 3.13).
"""

from __future__ import annotations

import _thread
import sys

from playhead.encoding.jsonbytes import decode_std, encode_std
from playhead.hooks.guest import Patches, need
from playhead.recording import lanes, tool_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

# Recorded as a piece of a tool's call when the tool changes the filters.
_CHANGED = "changed"
# In the warning of `os.fork` and `os.forkpty` in a process with several threads.
_FORKED = "is multi-threaded, use of fork"


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is warnings."""
    need(module, "_showwarnmsg", "_filters_mutated", "warn_explicit")
    # The threads that repeat a taped warning at the moment. It must not be printed.
    silence: list[int] = []
    changed = module._filters_mutated

    def repeat(text: str) -> None:
        found = decode_std(text.encode())
        if found == _CHANGED:
            changed()
            return
        silence.append(_thread.get_ident())
        try:
            _warn_again(module, found)
        except Warning:
            pass  # the filters turn this warning into an exception; Python does not register it then
        finally:
            silence.remove(_thread.get_ident())

    patches.replace(module, "_showwarnmsg", lambda original: _shown(original, silence))
    patches.replace(module, "_filters_mutated", _changed)
    tool_facts.writers[tool_facts.WARNINGS] = repeat


def _shown(original: Callable[[Any], None], silence: list[int]) -> Callable[[Any], None]:
    def _showwarnmsg(message: Any) -> None:
        if _thread.get_ident() in silence or _is_about_our_threads(message):
            return
        if lanes.printing.get() is not None:
            kind = message.category
            name = f"{kind.__module__}:{kind.__qualname__}"
            facts = [name, str(message.message), message.filename, message.lineno]
            tool_facts.note(tool_facts.WARNINGS, encode_std(facts).decode())
        original(message)

    return _showwarnmsg


def _is_about_our_threads(message: Any) -> bool:
    """Return whether Python 3.12 or newer warns of a fork beside other threads, and all of these are ours."""
    if message.category is not DeprecationWarning or _FORKED not in str(message.message):
        return False
    threading = sys.modules.get("threading")
    if threading is None:
        return True
    # Playhead starts its threads without the module, which does not know them.
    return int(threading.active_count()) == 1


def _changed(original: Callable[[], None]) -> Callable[[], None]:
    def _filters_mutated() -> None:
        if lanes.printing.get() is not None:
            tool_facts.note(tool_facts.WARNINGS, encode_std(_CHANGED).decode())
        original()

    return _filters_mutated


def _warn_again(module: ModuleType, found: list[Any]) -> None:
    """Issue a taped warning again, so that Python registers it for its line of code."""
    name, text, file, line = found
    owner = next(
        (one for one in list(sys.modules.values()) if getattr(one, "__file__", None) == file), None
    )
    registry = {} if owner is None else vars(owner).setdefault("__warningregistry__", {})
    source = None if owner is None else owner.__name__
    module.warn_explicit(text, _category(name), file, line, source, registry)


def _category(name: str) -> type[Warning]:
    home, _, kind = name.partition(":")
    found = getattr(sys.modules.get(home), kind, None)
    return found if isinstance(found, type) and issubclass(found, Warning) else UserWarning
