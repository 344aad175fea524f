"""A module that is imported when it is first used. Knows the import system; not what is put off.

Every process of a recorded run pays for what is imported at its start: a child that lives for ten
milliseconds must not wait for hashlib's OpenSSL, or for decoders of answers that it never gets. Use as

    if TYPE_CHECKING:
        import hashlib
    else:
        hashlib = Later("hashlib")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """Stands where the module would. Each name is looked up once and kept."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._module), name)
        setattr(self, name, value)
        return value
