"""Serve taped RPCs to a sync client, with the classes of objects that grpc returns and raises."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from playhead.hooks.grpc import rpc
from playhead.hooks.grpc.rpc import RpcScript
from playhead.recording.crossing import END

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class ServedCall:
    """Has the methods by which a client reads the status of an RPC, answered from the tape."""

    def __init__(self, script: RpcScript) -> None:
        self._script = script
        self.crossing = script.crossing
        self._status = rpc.taped_status(script.taped)

    def code(self) -> Any:
        return rpc.code_of(self._status)

    def details(self) -> str:
        return str(self._status.get("details", ""))

    def initial_metadata(self) -> Any:
        return rpc.metadata_of(self._status.get("initial"))

    def trailing_metadata(self) -> Any:
        return rpc.metadata_of(self._status.get("trailing"))

    def debug_error_string(self) -> Any:
        return self._status.get("debug")

    def is_active(self) -> bool:
        return False

    def time_remaining(self) -> None:
        return None

    def cancel(self) -> bool:
        self.crossing.left()
        return False

    def cancelled(self) -> bool:
        return self._status.get("code") == 1

    def running(self) -> bool:
        return False

    def done(self) -> bool:
        return True

    def add_callback(self, callback: Any) -> bool:
        return False


class ServedFuture(ServedCall):
    """A taped RPC that the program has started as a future."""

    def __init__(self, script: RpcScript) -> None:
        super().__init__(script)
        self._has_come = False
        self._value: Any = None
        self._error: BaseException | None = None

    def result(self, timeout: Any = None) -> Any:
        self._come()
        if self._error is not None:
            raise self._error
        return self._value

    def exception(self, timeout: Any = None) -> Any:
        self._come()
        return self._error

    def add_done_callback(self, function: Any) -> None:
        self._come()
        function(self)

    def _come(self) -> None:
        if not self._has_come:
            self._has_come = True
            self.crossing.reach(END)
            try:
                self._value = served_answer(self._script)
            except Exception as error:  # noqa: BLE001  raised by `result`
                self._error = error


def served_stream() -> Any:
    """Return the class of a taped stream. It is also an exception, because a stream that fails raises itself."""
    grpc = sys.modules["grpc"]

    class TapedStream(ServedCall, grpc.RpcError):  # type: ignore[misc, name-defined]
        def __init__(self, script: RpcScript, requests: Any) -> None:
            super().__init__(script)
            self._requests = requests

        def __iter__(self) -> Iterator[Any]:
            return self

        def __next__(self) -> Any:
            script = self._script
            script.pull(self._requests)
            following = script.following()
            if following is not None:
                script.crossing.reach(following[0])
                return script.message(following[1])
            script.refuse_more()
            script.crossing.reach(END)
            rpc.end(script.crossing, self._status)
            if self._status.get("code"):
                raise self
            raise StopIteration

        next = __next__

        def __str__(self) -> str:
            return (
                f"<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = {self.code()}\n"
                f'\tdetails = "{self.details()}"\n\tdebug_error_string = "{self.debug_error_string()}"\n>'
            )

        __repr__ = __str__

    return TapedStream


def served_answer(script: RpcScript) -> Any:
    status = rpc.taped_status(script.taped)
    following = script.following()
    if following is not None:
        message = script.message(following[1])
        rpc.end(script.crossing, status)
        return message
    script.refuse_more()
    if not status.get("code") and isinstance(script.taped.error, BaseException):
        script.crossing.raised(script.taped.error)
        raise script.taped.error
    rpc.end(script.crossing, status)
    internals = sys.modules["grpc._channel"]
    initial, trailing = (rpc.metadata_of(status.get(one)) for one in ("initial", "trailing"))
    state = internals._RPCState((), initial, trailing, rpc.code_of(status), status.get("details"))
    state.debug_error_string = status.get("debug")
    raise internals._InactiveRpcError(state)
