"""The three functions that a boundary supplies for one call: `live`, `serve` and `observe`.

Knows what the deck expects of a boundary; does not know modes, tapes or client libraries. `Deck.perform`
and `Deck.perform_async` are the only callers.

A call that simply returns or raises inherits everything but `live`. A call whose answer is a stream (an HTTP
body, a socket, a process, a generator) sets `streams`, and then:

- `observe` gives the client an object that reports each piece to the crossing as the client takes it, and
  finally ends the crossing;
- `serve` gives the client an object that waits with `crossing.reach(point)` before it hands out each piece.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from playhead.recording.calls import Call
    from playhead.recording.crossing import Crossing


class Adapter:
    """One boundary's side of one call. Each call has its own instance."""

    __slots__ = ()

    # Whether pieces of the answer reach the client one by one, after `live` or `serve` has returned. If not,
    # the deck waits for the taped end before it calls `serve`.
    streams = False
    # The request's body, as long as the client can still send another one instead (see `with_body`).
    body: bytes | None = None
    # Why a mode cannot change the request, for the coverage hole on the tape.
    unchangeable = "this request cannot be changed"

    def live(self, crossing: Crossing) -> Any:
        """Perform the call for real. In the async form this returns an awaitable."""
        raise NotImplementedError

    def serve(self, crossing: Crossing) -> Any:
        """Give the taped answer to the client library: return it, raise it, or return its stream. In the
        async form of a stream this returns an awaitable.
        """
        taped = crossing.taped
        if taped is None:
            raise AssertionError("only a taped call is served")
        if taped.how == "raised" and isinstance(taped.error, BaseException):
            crossing.raised(taped.error)
            raise taped.error
        crossing.returned(taped.value)
        return taped.value

    def observe(self, crossing: Crossing, result: Any) -> Any:
        """Report the result of the live call; return the value for the client."""
        crossing.returned(result)
        return result

    def failed(self, crossing: Crossing, error: BaseException) -> None:
        """Report the exception of the live call."""
        crossing.failed(error)

    def with_body(self, body: bytes) -> Call:
        """Return the call with another body; `live` will send `crossing.instead`, which is that body."""
        raise NotImplementedError


class FunctionAdapter(Adapter):
    """A function whose result is the outcome: the simplest boundary."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    def live(self, crossing: Crossing) -> Any:
        return self._function()
