"""Serve a taped HTTP answer with the same pieces and the same end as in the recorded run.

Knows `Taped`, and how long to wait for an agent that gave up in the recorded run; does not know any HTTP client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from playhead.errors import Divergence
from playhead.host.later import Later
from playhead.recording.crossing import END, HEAD

if TYPE_CHECKING:
    from playhead.hooks import answers
    from playhead.hooks.http.exchange import Exchange
    from playhead.recording.calls import Taped
else:
    answers = Later("playhead.hooks.answers")  # a recorded program never needs it

# An agent that gave up in the recorded run (its timeout fired, or another task won a race) should give up again. But
# the reason may not occur again, and a replay must never hang.
PATIENCE_S = 60.0

# The fact of a taped answer that has the delay, in nanoseconds, that a fault added.
SLOW_NS = "slow_ns"


def taped_of(exchange: Exchange) -> Taped:
    if exchange.taped is None:
        raise AssertionError("only a taped exchange is served")
    return exchange.taped


def take(stream: Any, exchange: Exchange) -> None:
    """Read as much of the agent's upload as the server read in the recorded run. The code that makes the upload runs
    inside the crossing, as it did there.
    """
    left = _sent(taped_of(exchange))
    if not left:
        return
    with exchange.crossing:
        for piece in stream:
            left -= len(piece)
            if left <= 0:
                return


async def take_async(stream: Any, exchange: Exchange) -> None:
    left = _sent(taped_of(exchange))
    if not left:
        return
    with exchange.crossing:
        async for piece in stream:
            left -= len(piece)
            if left <= 0:
                return


def body(exchange: Exchange, broken: Callable[[str], Exception]) -> Iterator[bytes]:
    """Yield the pieces of an answer's body, then end as the tape does.

    `broken` makes the client's own error for a server that breaks off, for tapes that have no error.
    """
    taped, reach = taped_of(exchange), exchange.crossing.reach
    for point, piece in enumerate(taped.pieces):
        if piece.stream == "body":
            reach(point)
            yield piece.data
    if taped.how == "returned":
        exchange.crossing.reach_last()
    else:
        reach(END)
        raise ending(taped, exchange.name, broken)


async def body_async(
    exchange: Exchange, broken: Callable[[str], Exception]
) -> AsyncIterator[bytes]:
    taped, reach = taped_of(exchange), exchange.crossing.reach_async
    for point, piece in enumerate(taped.pieces):
        if piece.stream == "body":
            await reach(point)
            yield piece.data
    if taped.how == "returned":
        await exchange.crossing.reach_last_async()
    else:
        if taped.how == "left":
            await abandon(exchange)
        await reach(END)
        raise ending(taped, exchange.name, broken)


def must_have_begun(
    exchange: Exchange, broken: Callable[[str], Exception] = ConnectionResetError
) -> None:
    """Wait for the head; raise the taped exception if the answer never began."""
    exchange.crossing.reach(HEAD)
    taped = taped_of(exchange)
    if taped.head is None:
        raise ending(taped, exchange.name, broken)


async def must_have_begun_async(
    exchange: Exchange, broken: Callable[[str], Exception] = ConnectionResetError
) -> None:
    taped = taped_of(exchange)
    if taped.head is None and taped.how == "left":
        await abandon(exchange)
    await exchange.crossing.reach_async(HEAD)
    if taped.head is None:
        raise ending(taped, exchange.name, broken)


def is_late(taped: Taped, timeout: object) -> bool:
    """Return whether a fault delays the answer beyond the client's timeout. Such an answer stays on the tape for
    the client's next attempt.
    """
    slow = taped.facts.get(SLOW_NS)
    if not isinstance(slow, int) or not isinstance(timeout, (int, float)) or slow <= timeout * 1e9:
        return False
    if taped.give_back is not None:
        taped.give_back()
    return True


def ending(taped: Taped, name: str, broken: Callable[[str], Exception]) -> BaseException:
    """Return the exception to raise where a taped answer breaks off."""
    if taped.frozen_error is not None:
        error = answers.revived(taped.frozen_error, name)
        if isinstance(error, Divergence) and isinstance(taped.error, BaseException):
            return taped.error  # its class is not loaded here: as the mode has rebuilt it
        return error
    if taped.error is not None:
        return answers.revived(taped.error, name)
    if taped.how == "cut":
        return broken("peer closed connection without sending complete message body")
    if taped.how == "left":
        return Divergence(
            f"The tape of {name} ends here: when it was recorded, the agent stopped listening at "
            "this point, and now it reads on. Record the run again, or let this call go live."
        )
    return Divergence(
        f"The tape of {name} ends here: the recorded process died before the answer was whole. "
        "Record the run again, or let this call go live."
    )


async def abandon(exchange: Exchange) -> None:
    """Wait until the agent gives up, as a call without an answer does, but at most `PATIENCE_S` seconds."""
    await exchange.crossing.abandon_async(PATIENCE_S)


def _sent(taped: Taped) -> int:
    return sum(len(piece.data) for piece in taped.pieces if piece.stream == "sent")
