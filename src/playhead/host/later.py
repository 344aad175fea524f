"""Import a module when it is first used, and compile a pattern when it is first used.

Knows the import system; does not know which modules are deferred. For modules that every recorded process loads (see
`host.lean`): a child that lives for ten milliseconds must not wait for hashlib's OpenSSL, or for decoders of responses
that it never receives. Use as

    TYPE_CHECKING = False
    if TYPE_CHECKING:
        import hashlib
    else:
        hashlib = Later("hashlib")  # the reason
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from types import ModuleType
    from typing import Any


def loaded(module: str) -> ModuleType:
    """Import a module like `importlib.import_module`, without loading importlib."""
    __import__(module)
    return sys.modules[module]


class Later:
    """A stand-in for a module. Each name is looked up once and kept."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(loaded(self._module), name)
        setattr(self, name, value)
        return value


class _Pattern:
    """A stand-in for a compiled pattern."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        value = getattr(_re.compile(self._text), name)
        setattr(self, name, value)
        return value


_re = Later("re")


def pattern(text: str) -> re.Pattern[str]:
    """Return a pattern like `re.compile(text)`, compiled when it is first used."""
    return _Pattern(text)  # type: ignore[return-value]  # has what a pattern has
