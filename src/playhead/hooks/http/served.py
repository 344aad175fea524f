"""An answer from the tape, given out as it came: same pieces, same end. Knows `Taped`, and how
long to wait for an agent that gave up then; no HTTP client by name.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from playhead.errors import Divergence
from playhead.host.later import Later
from playhead.recording import pacing

if TYPE_CHECKING:
    from playhead.hooks.http import revive
    from playhead.recording.calls import Taped
else:
    revive = Later("playhead.hooks.http.revive")  # a recorded program never needs it

# An agent that gave up then (a timeout of its own, a race it let another task win) gives up again.
# Whatever made it leave may not come back, though, and a replay must never hang.
PATIENCE_S = 60.0

# The fact of a taped answer that says by how much it was slowed down.
SLOW_NS = "slow_ns"


def take(stream: Any, taped: Taped) -> None:
    """Take from the agent as much of its upload as was taken then."""
    left = _sent(taped)
    for piece in stream if left else ():
        left -= len(piece)
        if left <= 0:
            return


async def take_async(stream: Any, taped: Taped) -> None:
    left = _sent(taped)
    if not left:
        return
    async for piece in stream:
        left -= len(piece)
        if left <= 0:
            return


def body(taped: Taped, name: str, broken: Callable[[str], Exception]) -> Iterator[bytes]:
    """The pieces of an answer's body, then its end.

    `broken` is what the client raises when the other side breaks off, where the tape does not say.
    """
    at = first_ns(taped)
    for piece in taped.pieces:
        if piece.stream == "body":
            pacing.rest(piece.at_ns - at)
            at = piece.at_ns
            yield piece.data
    if taped.how == "returned":
        pacing.rest_to_end(taped.took_ns)
    else:
        pacing.rest(taped.took_ns - at)
        raise ending(taped, name, broken)


async def body_async(
    taped: Taped, name: str, broken: Callable[[str], Exception]
) -> AsyncIterator[bytes]:
    at = first_ns(taped)
    for piece in taped.pieces:
        if piece.stream == "body":
            await pacing.rest_async(piece.at_ns - at)
            at = piece.at_ns
            yield piece.data
    if taped.how == "returned":
        await pacing.rest_to_end_async(taped.took_ns)
    else:
        if taped.how == "left":
            await abandon(taped)
        await pacing.rest_async(taped.took_ns - at)
        raise ending(taped, name, broken)


def first_ns(taped: Taped) -> int:
    """When the answer began. Without a place on the tape, heads come with what follows them."""
    return taped.first_ns


def must_have_begun(
    taped: Taped, name: str, broken: Callable[[str], Exception] = ConnectionResetError
) -> None:
    """Raise what the taped call raised, if its answer never began."""
    pacing.rest(first_ns(taped))
    if taped.head is None:
        raise ending(taped, name, broken)


async def must_have_begun_async(
    taped: Taped, name: str, broken: Callable[[str], Exception] = ConnectionResetError
) -> None:
    if taped.head is None and taped.how == "left":
        await abandon(taped)
    await pacing.rest_async(first_ns(taped))
    if taped.head is None:
        raise ending(taped, name, broken)


def is_late(taped: Taped, timeout: object) -> bool:
    """Whether an answer was made slower, on purpose, than its client waits for: then it stays on the
    tape, for the client that tries again.
    """
    slow = taped.facts.get(SLOW_NS)
    if not isinstance(slow, int) or not isinstance(timeout, (int, float)) or slow <= timeout * 1e9:
        return False
    if taped.give_back is not None:
        taped.give_back()
    return True


def ending(taped: Taped, name: str, broken: Callable[[str], Exception]) -> BaseException:
    """What to raise where a taped answer breaks off."""
    if taped.frozen_error is not None:
        error = revive.revived(taped.frozen_error, name)
        if isinstance(error, Divergence) and isinstance(taped.error, BaseException):
            return taped.error  # a class that is not loaded here, as the mode has rebuilt it
        return error
    if taped.error is not None:
        return revive.revived(taped.error, name)
    if taped.how == "cut":
        return broken("peer closed connection without sending complete message body")
    if taped.how == "left":
        return Divergence(
            f"The tape of {name} ends here: when it was recorded, the agent stopped listening at "
            "this point, and now it goes on. Record the run anew, or let this call go live."
        )
    return Divergence(
        f"The tape of {name} ends here: the recorded process died before the answer was whole. "
        "Record the run anew, or let this call go live."
    )


async def abandon(taped: Taped) -> None:
    """Wait as a call does that is never answered, until the agent gives it up; but not for ever."""
    if await pacing.abandon(taped.took_ns):
        return
    trio = sys.modules.get("trio")
    if trio is not None and _runs_trio(trio):
        await trio.sleep(PATIENCE_S)
    else:
        await sys.modules["asyncio"].sleep(PATIENCE_S)


def _runs_trio(trio: Any) -> bool:
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


def _sent(taped: Taped) -> int:
    return sum(len(piece.data) for piece in taped.pieces if piece.stream == "sent")
