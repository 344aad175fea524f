"""Let a Python child process join the run. Knows the slot for this; `launch/guest` fills it.

A caller may give the child a separate environment (MCP's stdio client passes on six variables) or start it with `-I`.
So the variables that make it join are added each time a process is started.
"""

from __future__ import annotations

import os

from playhead.encoding.values import safe_str
from playhead.recording.deck import Crossing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Optional

    Env = Optional[dict[str, str]]  # noqa: UP045  evaluated: 3.10 has no `|` between these

    Carrier = Callable[[list[str], "Mapping[str, str] | None", str], tuple[list[str], Env]]


_carrier: Carrier | None = None
# Returns the variables that children inherit and that `os.environ` does not show.
_standing: Callable[[], Mapping[str, str]] = dict


def set_carrier(carrier: Carrier | None) -> None:
    """Set the carrier: `carrier(argv, env, call_ref)` returns the argv and env with which the child joins the run. An
    env of None is that of the parent. A carrier of None leaves children alone.
    """
    global _carrier  # noqa: PLW0603  one a process, as the deck is
    _carrier = carrier


def set_standing(standing: Callable[[], Mapping[str, str]]) -> None:
    """Set the function that returns the variables of this process that are only in the C environment and not in
    `os.environ`. It is called each time, because the program may change its PYTHONPATH, which includes ours.
    """
    global _standing  # noqa: PLW0603  one a process, as the deck is
    _standing = standing


def ref_of(crossing: Crossing) -> str | None:
    """Return the name of a call in its run. The call is the parent of the child's segment."""
    if crossing.seq is None:
        return None
    return f"{crossing.deck.recorder.segment}:{crossing.seq}"


def carry(
    argv: Sequence[str], env: Mapping[Any, Any] | None, crossing: Crossing
) -> tuple[list[str], Env]:
    """Return the argv and env to start a child with. An env of None means that of the caller."""
    words, ref = list(argv), ref_of(crossing)
    carrier = crossing.deck.carrier or _carrier
    if carrier is None or ref is None:
        return words, None
    try:
        variables = (
            None if env is None else {os.fsdecode(k): os.fsdecode(v) for k, v in env.items()}
        )
        carried, made = carrier(list(words), variables, ref)
    except Exception as error:  # noqa: BLE001  fails open
        # The call itself reports an invalid environment to the caller.
        crossing.deck.recorder.warn(f"a child cannot join the run: {safe_str(error)}.")
        return words, None
    return carried, None if made is None or made == variables else made


class LentVariables:
    """Variables that a child inherits from the C environment, for calls that take no `env`.

    `os.environ` keeps the program's values. Another thread that starts a process at the same moment through a
    hooked call sets its own variables and is not affected.
    """

    def __init__(self, env: Env) -> None:
        self._standing = _standing()
        self._lent = {
            name: value
            for name, value in (env or {}).items()
            if (name in self._standing if self._standing else os.environ.get(name) != value)
        }

    def __enter__(self) -> None:
        for name, value in self._lent.items():
            os.putenv(name, value)

    def __exit__(self, *raised: object) -> None:
        for name in self._lent:
            before = self._standing.get(name, os.environ.get(name))
            if before is None:
                os.unsetenv(name)
            else:
                os.putenv(name, before)
