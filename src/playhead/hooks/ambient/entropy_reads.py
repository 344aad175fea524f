"""Record the random bytes and UUIDs that Python code draws, and serve them in a replay.

Knows the functions of `os`, `ssl`, `uuid`, `uuid_utils` and `fastuuid` that draw them.
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
# Functions of fastuuid that return several UUIDs at once, or their hexadecimal digits.
_BULKS = ("uuid4_bulk", "uuid7_bulk", "uuid4_as_strings_bulk", "uuid7_as_strings_bulk")


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


def hook_fastuuid(module: ModuleType, patches: Patches) -> None:
    """Record whole UUIDs, because fastuuid makes them in Rust, too. litellm names its answers with them."""
    hook_uuid_utils(module, patches)
    made: dict[int, Any] = {}
    for name in ("uuid_v1mc", *_BULKS):
        if hasattr(module, name):
            original = getattr(module, name)
            wrap = _bulk(module, name) if name in _BULKS else _whole(module, name, version=1)
            patches.replace(module, name, _builtin(wrap))
            made[id(original)] = getattr(module, name)
    replace_copies(patches, made)


def _builtin(wrap: Callable[[Any], Any]) -> Callable[[Any], Builtin]:
    return lambda original: Builtin(wrap(original))


def _whole(module: ModuleType, kind: str, *, version: int | None = None) -> Callable[[Any], Any]:
    version = int(kind[-1]) if version is None else version

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


def _bulk(module: ModuleType, kind: str) -> Callable[[Any], Any]:
    version, are_texts = int(kind[4]), "strings" in kind

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def made(n: int) -> list[Any]:
            # The number is part of the kind, as in `bytes_of`.
            taken = ambient.read(
                f"{kind} {n}",
                lambda: " ".join(map(str, original(n))),
                lambda draw: " ".join([_minted(draw(16), version) for _ in range(n)]),
            ).split()
            if are_texts:
                return [one.replace("-", "") for one in taken]
            return [module.UUID(one) for one in taken]

        return made

    return wrap


def _minted(raw: bytes, version: int) -> str:
    bits = bytearray(raw)
    bits[6] = bits[6] & 0x0F | version << 4
    bits[8] = bits[8] & 0x3F | 0x80
    text = bits.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
