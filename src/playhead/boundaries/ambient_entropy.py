"""Entropy, where Python draws it: urandom, seeds of `random`, uuids. Knows those modules.

Bytes are drawn for real and taped; in replay they come from the tape. `random`'s own generators are
not taped number by number: their seeds are, and they run on from there by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead import ambient, clock
from playhead.boundaries.guest import Patches, need

_UUIDS = ("uuid1", "uuid4", "uuid6", "uuid7", "uuid8")


def hook_os(module: ModuleType, patches: Patches) -> None:
    patches.replace(module, "urandom", _bytes)


def _bytes(original: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def urandom(size: int, /) -> bytes:
        return bytes.fromhex(ambient.read("urandom", lambda: original(size).hex()))

    return urandom


def _seed() -> str:
    """256 bits from the world, or the same ones from the tape."""
    return ambient.read("seed", lambda: clock.urandom(32).hex())


def hook_random(module: ModuleType, patches: Patches) -> None:
    need(module, "Random", "_urandom", "seed")

    def seeded(original: Callable[..., None]) -> Callable[..., None]:
        def seed(self: Any, a: Any = None, version: int = 2) -> None:
            if a is None and ambient.source() is not None and not isinstance(self, module.SystemRandom):
                a = int(_seed(), 16)
            original(self, a, version)

        return seed

    patches.replace(module, "_urandom", _bytes)
    patches.replace(module.Random, "seed", seeded)
    if ambient.source() is not None:
        # The module's own generator was seeded when the module was made, a moment ago.
        module.seed(int(_seed(), 16))


def hook_uuid(module: ModuleType, patches: Patches) -> None:
    """uuid4 draws from urandom. uuid1 and its kin ask C for the time: taped whole."""
    for name in _UUIDS:
        if name != "uuid4" and hasattr(module, name):
            patches.replace(module, name, _whole(module, name))


def hook_uuid_utils(module: ModuleType, patches: Patches) -> None:
    """Made in Rust, below every hook: taped whole."""
    for name in _UUIDS:
        if hasattr(module, name):
            patches.replace(module, name, _whole(module, name))


def _whole(module: ModuleType, kind: str) -> Callable[[Any], Any]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def made(*args: Any, **kwargs: Any) -> Any:
            return module.UUID(ambient.read(kind, lambda: str(original(*args, **kwargs))))

        return made

    return wrap


def hook_numpy(module: ModuleType, patches: Patches) -> None:
    """numpy's old global generator seeds itself from the system in C."""
    if ambient.source() is not None:
        module.seed(int(_seed(), 16) % 2**32)
