"""Record passwords that a person types (`getpass`) as a placeholder, which a replay serves.

From then on the password is a known secret: wherever the program sends it, the tape has the same placeholder.
"""

from __future__ import annotations

from playhead.hooks.guest import Patches, need
from playhead.hooks.input import input_slot
from playhead.recording import deck
from playhead.recording.adapter import Adapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.recording.crossing import Crossing

# The placeholder if redaction is off, and for passwords that are too short to be recognised elsewhere.
_PLACEHOLDER = "[redacted:password:00000000]"


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "getpass")
    patches.replace(module, "getpass", _getpass)


def _getpass(original: Callable[..., str]) -> Callable[..., str]:
    def getpass(prompt: str = "Password: ", stream: Any = None, **options: Any) -> str:
        open_deck = input_slot.deck_for_read() if input_slot.is_recorded() else None
        if open_deck is None:
            return original(prompt, stream, **options)
        call = deck.Call(boundary="input", name="getpass", facts={"prompt": prompt})
        password: str = open_deck.perform(call, _Typed(lambda: original(prompt, stream, **options)))
        return password

    return getpass


class _Typed(Adapter):
    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[], str]) -> None:
        self._ask = ask

    def live(self, crossing: Crossing) -> str:
        return self._ask()

    def observe(self, crossing: Crossing, result: str) -> str:
        recorder = crossing.deck.recorder
        recorder.learn_secrets({"PASSWORD": result})
        shown = recorder.frozen(result)
        crossing.returned(_PLACEHOLDER if shown == result else shown)
        return result
