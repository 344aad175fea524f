"""Names of things in an event, spelled as JSON. Knows what hosts call kinds, agents and causes, and
that there may be secrets in it; not what is named.
"""

from __future__ import annotations

from playhead.encoding.jsonbytes import quote
from playhead.encoding.values import safe_str
from playhead.host.later import Later
from playhead.redact import Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import enum
    from typing import Any
else:
    enum = Later("enum")


_LONGEST_REMEMBERED = 200
_MOST_REMEMBERED = 10_000


class Quoted(dict[str, str]):
    """Strings that come again and again (kinds, names), spelled as JSON once, secrets out."""

    def __init__(self, redactor: Redactor | None) -> None:
        super().__init__()
        self._redactor = redactor

    def __missing__(self, text: str) -> str:
        parent, _, ordinal = text.rpartition("/")
        if parent and ordinal.isdecimal() and self.get(parent) == f'"{parent}"':
            # A lane below another, of which a program may have one for each task: what was started from
            # one whose name is harmless has a harmless name.
            spelled = f'"{text}"'
        else:
            spelled = self.spell(text)
        if len(text) <= _LONGEST_REMEMBERED:
            if len(self) > _MOST_REMEMBERED:
                self.clear()
            self[text] = spelled
        return spelled

    def spell(self, text: str) -> str:
        clean = text if self._redactor is None else self._redactor.clean_text(text)
        if clean.isascii() and clean.isprintable() and '"' not in clean and "\\" not in clean:
            return f'"{clean}"'
        # Half of a surrogate pair, as in the names of odd files, is no JSON to every reader.
        return quote(clean.encode("utf-8", "backslashreplace").decode())


def is_seq(ref: Any) -> bool:
    return type(ref) is int and 0 <= ref < 2**63


def word(value: Any) -> str:
    """A kind or a name that a host gives as an enum, or as anything else that has a text."""
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, enum.Enum) and isinstance(value.value, str):
        return value.value
    return safe_str(value)
