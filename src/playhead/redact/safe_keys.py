"""Decide which keys of a value may be written unchanged. Knows names of secrets and command lines; does not know values
of secrets.
"""

from __future__ import annotations

from playhead.encoding.plain import Keys
from playhead.redact import shapes
from playhead.redact.names import is_secret_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LINES = frozenset({"argv", "command", "shell"})
# Members with their own rules, wherever they occur: base64 is decoded, and in a command line an option describes the
# next word.
OWN_WAY = frozenset({"b64", *_LINES})
# The members of a request to start a process. `env` is not among them: its variables may have any names.
_OF_A_PROCESS = frozenset({"argv", "shell", "executable", "cwd", "stdin"})


class SafeKeys(Keys):
    """Decides which keys are neither codecs nor names of secrets."""

    def __init__(
        self,
        names: frozenset[str],
        kept: frozenset[str] = frozenset(),
        own_way: frozenset[str] = OWN_WAY,
    ) -> None:
        super().__init__()
        self._names = names
        self._kept = kept
        self._own_way = own_way
        # The keys of data whose command lines can be written unchanged.
        self._with_lines = SafeKeys(names, kept, own_way - _LINES) if own_way & _LINES else self

    def is_safe(self, key: str) -> bool:
        return "$" not in key and key not in self._own_way and not self.is_secret(key)

    def is_secret(self, key: str) -> bool:
        if key in self.known:
            return False
        if self._kept and key.lower() in self._kept:
            return False
        return is_secret_name(key) or key.lower() in self._names

    def of(self, data: Any) -> SafeKeys:
        """Return the keys that may be written unchanged in `data`: those of command lines too, if `data` is the
        description of a process and none of its options names a secret.

        Otherwise each process call would be examined value by value, which takes longer than writing it.
        """
        if type(data) is not dict or "command" not in data:
            return self
        request = data.get("request")
        if type(request) is not dict or not request.keys() <= _OF_A_PROCESS:
            return self
        for word in request.get("argv", ()):
            if type(word) is not str or (word[:1] == "-" and self.is_secret(_option_name(word))):
                return self
        if _is_harmless(data["command"]) and _is_harmless(request.get("shell", "")):
            return self._with_lines
        return self


def _option_name(word: str) -> str:
    return word.partition("=")[0].lstrip("-")


def _is_harmless(line: Any) -> bool:
    """Return whether no option in a command line has a secret as its value. False: it has to be examined."""
    if type(line) is not str or "\\" in line:
        return False
    return "--" not in line or shapes.option().search(line.encode("utf-8", "replace")) is None
