"""Report that the messages to a notebook kernel are not recorded. Knows ipykernel's application class.

nbconvert, papermill and other clients send cells to the kernel over ZeroMQ, which has its own sockets in C. The calls
that cells make are on the tape, but a replay could not send the cells again. So the run is `partial`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.hooks.guest import Patches, need
from playhead.hooks.input import input_slot

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is ipykernel.kernelapp."""
    need(module.IPKernelApp, "start")
    patches.replace(module.IPKernelApp, "start", _start)


def _start(original: Callable[..., Any]) -> Callable[..., Any]:
    def start(self: Any, *args: Any, **options: Any) -> Any:
        open_deck = input_slot.deck_for_read()
        if open_deck is not None:
            why = "it reads its cells from sockets of ZeroMQ, which no hook sees"
            open_deck.unserved("the notebook kernel", why)
        return original(self, *args, **options)

    return start
