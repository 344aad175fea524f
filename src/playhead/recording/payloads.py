"""An event's data to JSON: reduced to its level, frozen, secrets out, large parts in blobs. Knows
values, redaction and encoders; not what an event is, nor where it goes.
"""

from __future__ import annotations

from playhead import events
from playhead.encoding import jsonbytes
from playhead.encoding.plain import Keys, is_plain
from playhead.encoding.values import freeze
from playhead.recording.levels import reduce
from playhead.redact import Redactor
from playhead.tape.blobs import THRESHOLD
from playhead.tape.spill import spill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from playhead.events import Level


# Lone surrogates; keys of another class than `str`; a dict that another thread changes just now.
_UNPLAIN = (ValueError, TypeError, RecursionError, RuntimeError)
# How much of an event that stays in one piece is a text; the rest is everything else.
LONGEST_TEXT = THRESHOLD * 3 // 4


class Payloads:
    """One per recorder; a forked child shares its parent's."""

    def __init__(
        self, run: Path | str, *, level: Level, redactor: Redactor | None, may_import: bool
    ) -> None:
        self._run = run
        self._level = level
        self._redactor = redactor
        self._keys = Keys() if redactor is None else redactor.safe_keys
        self._suspects = None if redactor is None else redactor.suspicion()
        self._encode = jsonbytes.fastest(may_import=may_import)
        self._hurried = False

    def encode(self, kind: str, data: Any, user: bool) -> bytes:  # noqa: FBT001  (hot path)
        if self._level != "full":
            ours = kind in events.KINDS and not user
            data = reduce(self._level, kind, data, ours=ours, frozen=self.frozen)
        plain = False
        try:
            if is_plain(data, self._keys):
                encoded = self._encode(data)
                if len(encoded) <= THRESHOLD and not (self._suspects and self._suspects(encoded)):
                    return encoded
                plain = True
        except _UNPLAIN:
            plain = False
        frozen = self._clean(data) if plain else self._settled(data)
        encoded = self._encode(frozen)
        return encoded if len(encoded) <= THRESHOLD else spill(self._run, frozen, self._encode)

    def encode_clean(self, kind: str, data: Any) -> bytes:
        """For data that we have made ourselves: plain, and without secrets or looked through already.
        Asking again would cost a stream's piece as much as writing it.
        """
        if self._level != "full":
            return self.encode(kind, data, False)
        encoded = self._encode(data)
        return encoded if len(encoded) <= THRESHOLD else spill(self._run, data, self._encode)

    def spell_value(self, value: Any) -> bytes | None:
        """The same for a value that JSON holds as it stands."""
        try:
            if self._level != "full" or not is_plain(value, self._keys):
                return None
            encoded = self._encode(value)
        except _UNPLAIN:
            return None
        if len(encoded) > LONGEST_TEXT or (self._suspects is not None and self._suspects(encoded)):
            return None
        return encoded

    def spell_text(self, raw: bytes) -> bytes | None:
        """UTF-8 as JSON, for an event spelled by hand; None where `encode` has to look closer."""
        if len(raw) > LONGEST_TEXT:
            return None
        try:
            encoded = self._encode(raw.decode())
        except ValueError:
            return None
        if len(encoded) > LONGEST_TEXT or (self._suspects is not None and self._suspects(encoded)):
            return None
        return encoded

    def frozen(self, value: Any) -> Any:
        """`value` as it would stand on the tape: frozen, secrets out. For matching against one."""
        try:
            if is_plain(value, self._keys):
                suspicious = self._suspects is not None and self._suspects(self._encode(value))
                return self._clean(value) if suspicious else value
        except _UNPLAIN:
            return self._settled(value)
        return self._settled(value)

    def _clean(self, plain: Any) -> Any:
        """What JSON holds as it stands needs no freezing, only a closer look."""
        return plain if self._redactor is None else self._redactor.clean(plain)

    def _settled(self, value: Any) -> Any:
        frozen = freeze(value)
        if self._redactor is None:
            return frozen
        if self._redactor.suspects(self._encode(frozen)):
            return self._redactor.clean(frozen)
        return self._redactor.clean_names(frozen)

    def encode_with(self, encode: jsonbytes.Encode) -> None:
        self._encode, self._hurried = encode, True

    def hurry(self) -> None:
        """A busy program: take the faster encoder that the host has installed, but not loaded.

        Asked for once: a signal handler may record while that import is under way.
        """
        if not self._hurried:
            self._hurried = True
            self._encode = jsonbytes.fastest(may_import=True)

    def learn_secrets(self, variables: Mapping[str, str]) -> bool:
        """Redact the secrets among these variables from now on; whether there were any new ones."""
        if self._redactor is None or not self._redactor.renew(variables):
            return False
        self._suspects = self._redactor.suspicion()
        return True
