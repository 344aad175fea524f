"""Report that the requests to a granian server are not recorded. Knows granian's server classes.

granian accepts, reads and answers in Rust, where no hook sees the bytes. A replay could not send the requests again, so
the run is `partial`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.input import input_slot

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is granian.server.common."""
    need(module.AbstractServer, "startup")
    patches.replace(module.AbstractServer, "startup", _startup)


def _startup(original: Callable[..., Any]) -> Callable[..., Any]:
    def startup(self: Any, *args: Any, **options: Any) -> Any:
        open_deck = input_slot.deck_for_read()
        if open_deck is not None:
            open_deck.unserved("granian", "it accepts connections in Rust, where no hook sees them")
        return original(self, *args, **options)

    return startup
