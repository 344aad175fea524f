"""Record the ids of PyMongo's requests: a replay sends the recorded ones, as it compares conversations byte by byte.

PyMongo draws them from generators that all of its threads share (`random` in Python, `rand` in C), and a client always
has threads that watch its servers: the order of the draws changes with every run. Knows `pymongo.message`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.hooks.guest import Patches, need
from playhead.recording import ambient

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

# Where the id is in a message: behind its length.
_BEGIN, _END = 4, 8


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is pymongo.message."""
    need(module, "_randint", "_op_msg_uncompressed", "_batched_op_msg")
    patches.replace(module, "_randint", _drawn)
    patches.replace(module, "_op_msg_uncompressed", _message)
    patches.replace(module, "_batched_op_msg", _message)


def _drawn(original: Callable[[], int]) -> Callable[[], int]:
    def _randint() -> int:
        return ambient.read("MongoDB id", original)

    return _randint


def _message(original: Callable[..., Any]) -> Callable[..., Any]:
    def message(*args: Any, **options: Any) -> Any:
        number, data, *rest = original(*args, **options)
        taken = ambient.read("MongoDB id", lambda: number)
        ours = (taken & 0xFFFFFFFF).to_bytes(4, "little")
        return (taken, data[:_BEGIN] + ours + data[_END:], *rest)

    return message
