"""Older formats to the current one, a step at a time. Knows members of lines; not events or files.

A step takes the members of a line as version N wrote them and gives them as N + 1 would have. It
never sees `crc`'s meaning: checksums belong to the bytes on the disk, which stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from playhead.errors import TapeError
from playhead.tape.format import (
    FORMAT_VERSION,
    Decode,
    NotAnEvent,
    decoder,
    from_members,
    members_of,
)

Step = Callable[[dict[str, Any]], dict[str, Any]]


def _from_1(members: dict[str, Any]) -> dict[str, Any]:
    """Format 2 brings `order` events. A tape of format 1 has none, and that says so."""
    return members


# From version N to N + 1.
STEPS: dict[int, Step] = {1: _from_1}


def can_migrate(version: int, steps: Mapping[int, Step] = STEPS, to: int = FORMAT_VERSION) -> bool:
    return all(one in steps for one in range(version, to)) if version <= to else False


def migrate(
    members: dict[str, Any],
    version: int,
    steps: Mapping[int, Step] = STEPS,
    to: int = FORMAT_VERSION,
) -> dict[str, Any]:
    """`members` of a line of that version as the current format has them."""
    for one in range(version, to):
        step = steps.get(one)
        if step is None:
            raise TapeError(
                f"This tape has format {version}, and there is no way from {one} to {one + 1}. "
                f"Formats 1 to {FORMAT_VERSION} can be read."
            )
        members = step(members)
    return members


def decoder_for(version: int, *, few: bool = False) -> Decode:
    """A function that decodes a line of that version; `few` as for `decoder`."""
    if version == FORMAT_VERSION:
        return decoder(few=few)

    def decode_older(line: bytes) -> Any:
        members = members_of(line)
        if not isinstance(members, dict):
            raise NotAnEvent("it is no JSON object")
        try:
            return from_members(migrate(members, version))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, NotAnEvent):
                raise
            raise NotAnEvent(f"it is no event of format {version}: {error}"[:200]) from None

    return decode_older


def segment_in(line: bytes) -> str:
    """The segment that a line belongs to, whatever its version: `pid` and `seg` are for ever."""
    members = members_of(line)
    if not isinstance(members, dict):
        raise NotAnEvent("it is no JSON object")
    return str(members.get("seg") or members.get("pid"))
