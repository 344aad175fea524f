"""Install hooks in other people's libraries: patches that can be undone, and a self-check that removes a hook when
the library is not as expected. Knows patching; does not know any library by name.
"""

from __future__ import annotations

import sys

from playhead import events
from playhead.encoding.values import safe_str
from playhead.host.lean import ModuleType, wrapping
from playhead.recording import deck
from playhead.recording.encoder import NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from playhead.recording.deck import Deck

    Hook = Callable[[ModuleType, "Patches"], None]


_MISSING = object()


class NotAsExpected(Exception):
    """The library lacks something that a hook needs; the message names it. Becomes a coverage gap on the tape."""


class Patches:
    """The replacements of one hook. `undo` restores the original objects."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []
        self._undos: list[Callable[[], None]] = []
        # Events about this hook, written to each run: a run may start when the hook is already installed.
        self.reports: list[NewEvent] = []

    def on_undo(self, undo: Callable[[], None]) -> None:
        """Register how to revert a change that is not an attribute."""
        self._undos.append(undo)

    def replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        """Replace `owner.name` by `wrap(original)`; raise NotAsExpected if `owner` has no such attribute.

        `wrap` returns a plain function (or another object of the right kind). Name, docs and signature are
        copied onto it. A static or class method is unwrapped and wrapped again.
        """
        inherited = getattr(owner, name, _MISSING)
        if inherited is _MISSING:
            raise NotAsExpected(f"{_called(owner)} has no {name}")
        own = vars(owner).get(name, _MISSING) if hasattr(owner, "__dict__") else _MISSING
        if isinstance(own, (staticmethod, classmethod)):
            made = type(own)(_named(wrap(own.__func__), own.__func__))
        else:
            original = inherited if own is _MISSING else own
            made = _named(wrap(original), original)
        setattr(owner, name, made)
        self._done.append((owner, name, own, made))

    def undo(self) -> None:
        while self._undos:
            self._undos.pop()()
        while self._done:
            owner, name, own, made = self._done.pop()
            if vars(owner).get(name) is not made:
                # Other code has wrapped our wrapper and must keep working. Our wrapper passes calls through.
                continue
            if own is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, own)


def need(owner: Any, *names: str) -> None:
    """Raise NotAsExpected unless `owner` has all of `names`. This is the self-check of a hook."""
    for name in names:
        if not hasattr(owner, name):
            raise NotAsExpected(f"{_called(owner)} has no {name}")


def holders(name: str, original: Any) -> list[ModuleType]:
    """Return the modules that have `original` under `name`: its own module, and those that copied it
    (`from library import name`) before the hook was installed.
    """
    loaded: list[object] = list(sys.modules.values())  # a program may have put any object there
    modules = [one for one in loaded if isinstance(one, ModuleType)]
    return [module for module in modules if vars(module).get(name) is original]


def hook_module(hook: Hook, module: ModuleType, *, boundary: str) -> Patches:
    """Run one hook on a freshly imported module. If the hook fails, undo it and report a coverage gap."""
    patches = Patches()
    library = module.__name__
    try:
        hook(module, patches)
    except Exception as error:  # noqa: BLE001  whatever a hook trips over must not break the host's import
        patches.undo()
        why = f"{type(error).__name__}: {safe_str(error)}"
        patches.reports.append(
            NewEvent(
                events.HOLE,
                {"boundary": boundary, "what": library, "version": version_of(module), "why": why},
            )
        )
    else:
        patches.reports.append(
            NewEvent(
                events.HOOK,
                {"boundary": boundary, "library": library, "version": version_of(module)},
            )
        )
    for open_deck in deck.all_intercepting():
        tell(patches, open_deck)
    return patches


def tell(patches: Patches, open_deck: Deck) -> None:
    """Write to the tape of this deck which hooks are installed, and which are not and why."""
    for event in patches.reports:
        open_deck.recorder.append(event)
        if event.kind == events.HOLE:
            what, why = event.data["what"], event.data["why"]
            open_deck.recorder.warn(f"{what} cannot be hooked ({why}); its calls are not recorded.")


def report(kind: str, data: dict[str, Any]) -> None:
    if (open_deck := deck.active()) is not None:
        open_deck.recorder.append(NewEvent(kind, data))


def version_of(module: ModuleType) -> str | None:
    """Return the `__version__` of the library's root module. Reading the package metadata would search files."""
    root = sys.modules.get(module.__name__.partition(".")[0], module)
    version = getattr(root, "__version__", None)
    return version if isinstance(version, str) else None


def _named(made: Any, original: Any) -> Any:
    if callable(made) and callable(original) and not isinstance(made, type):
        wrapping(made, original)
    return made


def _called(owner: Any) -> str:
    return (
        getattr(owner, "__qualname__", None)
        or getattr(owner, "__name__", None)
        or repr(type(owner))
    )
