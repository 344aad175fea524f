"""Record and serve the RPCs of grpc's sync channels: all four kinds, with one or many messages on each side.

Knows `grpc._channel.Channel`, which is below the interceptors of a program.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from playhead.hooks.grpc import rpc
from playhead.hooks.grpc.channel_methods import hook_channel
from playhead.hooks.grpc.grpc_served import ServedCall, ServedFuture, served_answer, served_stream
from playhead.hooks.grpc.rpc import RECEIVED, ObservedRpc, RpcMethod, RpcScript
from playhead.hooks.guest import Patches, need
from playhead.recording import deck
from playhead.recording.adapter import Adapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

    from playhead.recording.crossing import Crossing


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is grpc._channel."""
    need(module, "_InactiveRpcError", "_RPCState", "Channel")
    hook_channel(module.Channel, patches, _callable)


def _callable(
    plain: Any, raw: Any, method: RpcMethod, *, many_in: bool, many_out: bool
) -> _Callable:
    return (_ManyAnswers if many_out else _OneAnswer)(plain, raw, method, many_in=many_in)


class _Callable:
    """Replaces the client's own object for a method."""

    def __init__(self, plain: Any, raw: Any, method: RpcMethod, *, many_in: bool) -> None:
        self._plain, self._raw = plain, raw
        self.method = method
        self._many_in = many_in

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def _perform(
        self, kind: Any, request: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Perform the RPC through the deck. Return None if it is not recorded here."""
        open_deck = deck.active()
        if open_deck is None or open_deck.is_inside("grpc"):
            return None
        method = self.method
        metadata = args[1] if len(args) > 1 else options.get("metadata")
        message = None if self._many_in else method.pack(request)
        call = open_deck.describe(
            lambda: method.call(metadata, message, request), f"the RPC {method.name}", "grpc"
        )
        if call is None:
            return None
        requests = iter(request) if self._many_in else None

        def start(function: Any, crossing: Crossing) -> Any:
            given = message if requests is None else rpc.sent_by(requests, method, crossing)
            return function(given, *args, **options)

        return (open_deck.perform(call, kind(self._raw, method, start, requests)),)


class _OneAnswer(_Callable):
    def __call__(self, request: Any, *args: Any, **options: Any) -> Any:
        done = self._perform(_UnaryAdapter, request, args, options)
        return self._plain(request, *args, **options) if done is None else done[0][0]

    def with_call(self, request: Any, *args: Any, **options: Any) -> Any:
        done = self._perform(_UnaryAdapter, request, args, options)
        return self._plain.with_call(request, *args, **options) if done is None else done[0]

    def future(self, request: Any, *args: Any, **options: Any) -> Any:
        done = self._perform(_FutureAdapter, request, args, options)
        return self._plain.future(request, *args, **options) if done is None else done[0]


class _ManyAnswers(_Callable):
    def __call__(self, request: Any, *args: Any, **options: Any) -> Any:
        done = self._perform(_StreamAdapter, request, args, options)
        return self._plain(request, *args, **options) if done is None else done[0]


class _RpcAdapter(Adapter):
    __slots__ = ("_method", "_raw", "_requests", "_start")

    def __init__(self, raw: Any, method: RpcMethod, start: Any, requests: Any) -> None:
        self._raw, self._method, self._start, self._requests = raw, method, start, requests

    def failed(self, crossing: Crossing, error: BaseException) -> None:
        if _is_status(error):
            rpc.end(crossing, _status(error))
        else:
            crossing.failed(error)


class _UnaryAdapter(_RpcAdapter):
    """An RPC that blocks until its one answer arrives."""

    __slots__ = ()

    def live(self, crossing: Crossing) -> Any:
        return self._start(self._raw.with_call, crossing)

    def observe(self, crossing: Crossing, result: Any) -> Any:
        raw, call = result
        crossing.chunk(raw, RECEIVED)
        rpc.end(crossing, _status(call))
        return self._method.unpack(raw), call

    def serve(self, crossing: Crossing) -> Any:
        script = RpcScript(crossing, self._method)
        script.pull(self._requests)
        return served_answer(script), ServedCall(script)


class _FutureAdapter(_RpcAdapter):
    __slots__ = ()
    streams = True

    def live(self, crossing: Crossing) -> Any:
        return self._start(self._raw.future, crossing)

    def observe(self, crossing: Crossing, result: Any) -> Any:
        return _ObservedFuture(crossing, result, self._method)

    def serve(self, crossing: Crossing) -> Any:
        script = RpcScript(crossing, self._method)
        script.pull(self._requests)
        return ServedFuture(script)


class _StreamAdapter(_RpcAdapter):
    __slots__ = ()
    streams = True

    def live(self, crossing: Crossing) -> Any:
        return self._start(self._raw, crossing)

    def observe(self, crossing: Crossing, result: Any) -> Any:
        return _ObservedStream(crossing, result, self._method)

    def serve(self, crossing: Crossing) -> Any:
        return served_stream()(RpcScript(crossing, self._method), self._requests)


class _ObservedFuture(ObservedRpc):
    def result(self, timeout: Any = None) -> Any:
        try:
            raw = self._inner.result(timeout)
        except BaseException as error:
            if _is_status(error):
                rpc.end(self.crossing, _status(error))
            raise
        self.crossing.chunk(raw, RECEIVED)
        rpc.end(self.crossing, _status(self._inner))
        return self._method.unpack(raw)

    def exception(self, timeout: Any = None) -> Any:
        error = self._inner.exception(timeout)
        if error is None:
            self.result(timeout)
        elif _is_status(error):
            rpc.end(self.crossing, _status(error))
        return error

    def add_done_callback(self, function: Any) -> None:
        self._inner.add_done_callback(lambda _: function(self))


class _ObservedStream(ObservedRpc):
    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            raw = next(self._inner)
        except StopIteration:
            rpc.end(self.crossing, _status(self._inner))
            raise
        except BaseException as error:
            if _is_status(error):
                rpc.end(self.crossing, _status(error))
            raise
        self.crossing.chunk(raw, RECEIVED)
        return self._method.unpack(raw)

    next = __next__


def _is_status(error: BaseException) -> bool:
    return isinstance(error, sys.modules["grpc"].RpcError) and hasattr(error, "code")


def _status(call: Any) -> dict[str, Any]:
    debug = getattr(call, "debug_error_string", None)
    return rpc.status_of(
        call.code(),
        call.details(),
        call.initial_metadata(),
        call.trailing_metadata(),
        debug() if debug is not None and call.code() is not None and call.code().value[0] else None,
    )
