"""Record the names of temporary files; a replay uses the same names. Knows `tempfile`.

All threads draw names from one generator, so each name is recorded where it is drawn. A file that the recorded run
left behind would block its name in the replay. The replay moves such a file aside and never deletes it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.recording import ambient

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"
_MOST_ASIDE = 1000


class _Lent(threading.local):
    """Holds a name that is drawn already. The next draw in this thread returns it."""

    name: str | None = None


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "_RandomNameSequence", "_mkstemp_inner", "mkdtemp", "mktemp", "_sanitize_params")
    need(module._RandomNameSequence, "__next__")
    lent = _Lent()
    draw = module._RandomNameSequence.__next__
    names = module._RandomNameSequence()

    def following(original: Callable[[Any], str]) -> Callable[[Any], str]:
        def __next__(self: Any) -> str:  # noqa: N807  the name is the protocol's
            given, lent.name = lent.name, None
            return original(self) if given is None else given

        return __next__

    def name(folder: Any, prefix: Any, suffix: Any) -> str:
        taken = ambient.read("name", lambda: str(draw(names)), _derived)
        make_room(
            os.path.join(os.fsdecode(folder), os.fsdecode(prefix) + taken + os.fsdecode(suffix))
        )
        return taken

    def made(original: Callable[..., Any], *args: Any) -> Any:
        try:
            return original(*args)
        finally:
            lent.name = None

    def _mkstemp_inner(original: Callable[..., Any]) -> Callable[..., Any]:
        def inner(dir: Any, pre: Any, suf: Any, *rest: Any) -> Any:  # noqa: A002  as there
            lent.name = name(dir, pre, suf)
            return made(original, dir, pre, suf, *rest)

        return inner

    def mkdtemp(original: Callable[..., Any]) -> Callable[..., Any]:
        def mkdtemp(suffix: Any = None, prefix: Any = None, dir: Any = None) -> Any:  # noqa: A002
            start, end, folder, _ = module._sanitize_params(prefix, suffix, dir)
            lent.name = name(folder, start, end)
            return made(original, suffix, prefix, dir)

        return mkdtemp

    def mktemp(original: Callable[..., str]) -> Callable[..., str]:
        def mktemp(suffix: str = "", prefix: str = module.template, dir: Any = None) -> str:  # noqa: A002
            lent.name = name(module.gettempdir() if dir is None else dir, prefix, suffix)
            return str(made(original, suffix, prefix, dir))

        return mktemp

    patches.replace(module._RandomNameSequence, "__next__", following)
    patches.replace(module, "_mkstemp_inner", _mkstemp_inner)
    patches.replace(module, "mkdtemp", mkdtemp)
    patches.replace(module, "mktemp", mktemp)


def _derived(draw: Callable[[int], bytes]) -> str:
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in draw(8))


def make_room(path: str) -> None:
    """Move aside a file that the recorded run, or an earlier replay of it, left under this name. If it belongs
    to another user or cannot be moved, `tempfile` takes another name.
    """
    source = ambient.source()
    if source is None or source.log is not None:
        return
    try:
        found = os.lstat(path)
    except OSError:
        return  # the name is free, as it was in the recorded run
    if found.st_uid != os.geteuid() or found.st_ctime_ns < source.began_ns:
        return
    for number in range(1, _MOST_ASIDE):
        aside = f"{path}.before-replay-{number}"
        if os.path.lexists(aside):
            continue
        try:
            os.rename(path, aside)
        except OSError:
            return
        return
