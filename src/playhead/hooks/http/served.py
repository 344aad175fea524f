"""A taped HTTP answer, handed out as it came: the same pieces, the same end. Knows `Taped` and how long to wait
for an agent that gave up then; does not know any HTTP client.
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

# An agent that gave up then (a timeout of its own, a race that another task won) gives up again. But what made
# it leave may not come back, and a replay must never hang.
PATIENCE_S = 60.0

# The fact of a taped answer that says by how much it was slowed down.
SLOW_NS = "slow_ns"


def taped_of(exchange: Exchange) -> Taped:
    if exchange.taped is None:
        raise AssertionError("only a taped exchange is served")
    return exchange.taped


def take(stream: Any, exchange: Exchange) -> None:
    """Read as much of the agent's upload as the server read then. The code that makes the upload runs inside
    the crossing, as it did then.
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
    """The pieces of an answer's body, then its end.

    `broken` makes the client's own error for a server that breaks off, for tapes that have none.
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
    """Whether a fault made the answer slower than its client waits for. Such an answer stays on the tape for
    the client's next attempt.
    """
    slow = taped.facts.get(SLOW_NS)
    if not isinstance(slow, int) or not isinstance(timeout, (int, float)) or slow <= timeout * 1e9:
        return False
    if taped.give_back is not None:
        taped.give_back()
    return True


def ending(taped: Taped, name: str, broken: Callable[[str], Exception]) -> BaseException:
    """The exception to raise where a taped answer breaks off."""
    if taped.frozen_error is not None:
        error = answers.revived(taped.frozen_error, name)
        if isinstance(error, Divergence) and isinstance(taped.error, BaseException):
            return taped.error  # a class that is not loaded here, as the mode has rebuilt it
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
    """Wait as a call does that is never answered, until the agent gives up; but not for ever."""
    await exchange.crossing.abandon_async(PATIENCE_S)


def _sent(taped: Taped) -> int:
    return sum(len(piece.data) for piece in taped.pieces if piece.stream == "sent")
