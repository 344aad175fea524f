"""What a child process is started with, so that it is recorded too. Knows that somebody may want to
change argv and environment; not how a recording gets into a process (see `inject.children`).

Process boundaries call `carry` right before they start something, after the request was written down:
what we add is no part of what the program asked for.
"""

from __future__ import annotations

from typing import Any, Mapping, Protocol

from playhead import deck
from playhead.events import Ref
from playhead.values import safe_str


class Carrier(Protocol):
    """`argv` is whatever the program gave (a list, a shell's line, bytes); `env` None means that the
    child inherits; `call` is the event that starts it; `program` is what is run where that is not
    `argv[0]` (`executable=`). Returns what to start instead, as new objects."""

    def __call__(
        self, argv: Any, env: Mapping[Any, Any] | None, call: Ref | None, program: Any = None
    ) -> tuple[Any, Mapping[Any, Any] | None]: ...


_carrier: Carrier | None = None


def set_carrier(carrier: Carrier | None) -> None:
    global _carrier
    _carrier = carrier


def carry(
    argv: Any, env: Mapping[Any, Any] | None, call: Ref | None, program: Any = None
) -> tuple[Any, Mapping[Any, Any] | None]:
    """Argv and environment to start the child with; the program's own where nobody wants others."""
    if _carrier is None:
        return argv, env
    try:
        return _carrier(argv, env, call, program)
    except Exception as error:  # an argv or a mapping of the host's own make may do anything
        if (open_deck := deck.active()) is not None:
            open_deck.recorder.warn(f"a child process is not recorded ({safe_str(error)}).")
        return argv, env
