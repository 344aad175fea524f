"""Every exception of Playhead.

    PlayheadError
    ├── UsageError            the user asked for something impossible: exit 2
    │   ├── RunNotFound       no run, or more than one, has that name
    │   └── ConfigError       playhead.toml or a variable has an unexpected value
    ├── TapeError             this tape cannot be used for the request: exit 4
    │   ├── TapeDamaged       the bytes differ from those that were written; carries every Damage
    │   ├── TapeTooNew        made by a newer Playhead
    │   └── TapeNotReplayable recorded below level `full`, or without its world
    ├── NoFence               this machine cannot isolate a replay from the world: exit 4
    ├── StoreError            the folder of tapes cannot be read or written
    │   └── RemoteError       the shared store cannot be reached, or refuses
    └── Divergence            the run differs from its tape: exit 3; carries the report's entry

Each carries objects, and a message that says what was wrong, what was expected and what to do.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from playhead.event import Damage


class PlayheadError(Exception):
    """The base class. `exit_code` is the exit code of the command line."""

    exit_code = 1


class UsageError(PlayheadError):
    exit_code = 2


class RunNotFound(UsageError):
    def __init__(self, message: str, *, asked: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.asked = asked
        self.candidates = tuple(candidates)


class ConfigError(UsageError):
    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class TapeError(PlayheadError):
    exit_code = 4


class TapeDamaged(TapeError):
    def __init__(self, message: str, damage: Sequence[Damage] = ()) -> None:
        super().__init__(message)
        self.damage = tuple(damage)


class TapeTooNew(TapeError):
    def __init__(self, *, found: int, known: int) -> None:
        super().__init__(
            f"This tape has format {found}; this Playhead reads up to {known}. "
            "Upgrade Playhead to open it: `pip install -U playhead`."
        )
        self.found = found
        self.known = known


class TapeNotReplayable(TapeError):
    pass


class TapeNotTrusted(TapeError):
    """Another person recorded the tape, and the user has not agreed to run its command."""


class NoFence(PlayheadError):
    exit_code = 4


class StoreError(PlayheadError):
    pass


class RemoteError(StoreError):
    """The shared store cannot be reached, refuses, or has something else than expected."""


class EngineError(PlayheadError):
    """A cluster for batches cannot be reached, has no workers, or has workers without Playhead."""


class Divergence(PlayheadError):
    """A replay differs from its tape: the program makes a call, or sends data, that is not on the tape."""

    exit_code = 3

    def __init__(self, message: str, entry: Any = None) -> None:
        super().__init__(message)
        self.entry = entry
