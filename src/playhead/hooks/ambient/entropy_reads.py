"""Record the random bytes and UUIDs that Python code draws, and serve them in a replay.

Knows the functions of `os`, `ssl`, `uuid` and `uuid_utils` that draw them.
"""

from __future__ import annotations

from playhead.hooks.guest import Patches, need
from playhead.hooks.replacements import Builtin, replace_copies
from playhead.recording import ambient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


_UUIDS = ("uuid1", "uuid4", "uuid6", "uuid7", "uuid8")


def hook_os(module: ModuleType, patches: Patches) -> None:
    need(module, "urandom")
    made: dict[int, Any] = {}
    # `uuid4` calls `os.urandom` by name when it runs, so this covers it. C code that calls getrandom(2)
    # itself is not covered.
    for name in ("urandom", "getrandom"):
        if hasattr(module, name):
            original = getattr(module, name)
            patches.replace(module, name, bytes_of)
            made[id(original)] = getattr(module, name)
    replace_copies(patches, made)


def hook_ssl(module: ModuleType, patches: Patches) -> None:
    need(module, "RAND_bytes")
    # OpenSSL's own generator. TLS itself draws in C and is not affected.
    patches.replace(module, "RAND_bytes", bytes_of)


def bytes_of(original: Callable[..., bytes]) -> Any:
    """Wrap a function that returns the requested number of random bytes."""

    def drawn(size: int, /, *flags: Any) -> bytes:
        # The size is part of the kind, so that changed code that requests another size never gets these bytes.
        taken = ambient.read(
            f"bytes {size}",
            lambda: original(size, *flags).hex(),
            lambda draw: draw(size).hex(),
        )
        return bytes.fromhex(taken)

    return Builtin(drawn)


def hook_uuid(module: ModuleType, patches: Patches) -> None:
    """Record whole UUIDs, except those of uuid4, which draws its bytes from the hooked `os.urandom`."""
    need(module, "UUID", "uuid1")
    for name in _UUIDS:
        # uuid1 reads the MAC address and a C clock, and uuid7 keeps a counter: the whole value is taped.
        if name != "uuid4" and hasattr(module, name):
            patches.replace(module, name, _whole(module, name))


def hook_uuid_utils(module: ModuleType, patches: Patches) -> None:
    """Record whole UUIDs, because uuid_utils makes them in Rust, below every hook.

    `uuid_utils.compat` returns the UUID class of the standard library.
    """
    need(module, "UUID")
    made: dict[int, Any] = {}
    for name in _UUIDS:
        if hasattr(module, name):
            original = getattr(module, name)
            patches.replace(module, name, _builtin(_whole(module, name)))
            made[id(original)] = getattr(module, name)
    replace_copies(patches, made)


def _builtin(wrap: Callable[[Any], Any]) -> Callable[[Any], Builtin]:
    return lambda original: Builtin(wrap(original))


def _whole(module: ModuleType, kind: str) -> Callable[[Any], Any]:
    version = int(kind[-1])

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def made(*args: Any, **kwargs: Any) -> Any:
            taken = ambient.read(
                kind,
                lambda: str(original(*args, **kwargs)),
                lambda draw: _minted(draw(16), version),
            )
            return module.UUID(taken)

        return made

    return wrap


def _minted(raw: bytes, version: int) -> str:
    bits = bytearray(raw)
    bits[6] = bits[6] & 0x0F | version << 4
    bits[8] = bits[8] & 0x3F | 0x80
    text = bits.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
