"""Record and serve the RPCs of grpc's asyncio channels: all four kinds, as in `grpc_channel`.

Knows `grpc.aio._channel.Channel`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from playhead.hooks.grpc import rpc
from playhead.hooks.grpc.channel_methods import hook_channel
from playhead.hooks.grpc.rpc import RECEIVED, SENT, ObservedRpc, RpcMethod, RpcScript
from playhead.hooks.guest import Patches, need
from playhead.recording import deck
from playhead.recording.adapter import Adapter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator
    from types import ModuleType
    from typing import Any

    from playhead.recording.crossing import Crossing


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is grpc.aio._channel."""
    need(module, "Channel")
    hook_channel(module.Channel, patches, _AioCallable)


class _AioCallable:
    """Replaces the client's own object for a method."""

    def __init__(
        self, plain: Any, raw: Any, method: RpcMethod, *, many_in: bool, many_out: bool
    ) -> None:
        self._plain, self._raw, self._method = plain, raw, method
        self._many_in, self._many_out = many_in, many_out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def __call__(self, request: Any = None, *args: Any, **options: Any) -> Any:
        open_deck, method = deck.active(), self._method
        if open_deck is None or open_deck.is_inside("grpc"):
            return self._plain(request, *args, **options)
        metadata = args[1] if len(args) > 1 else options.get("metadata")
        message = None if self._many_in else method.pack(request)
        call = open_deck.describe(
            lambda: method.call(metadata, message, request), f"the RPC {method.name}", "grpc"
        )
        if call is None:
            return self._plain(request, *args, **options)

        def start(crossing: Crossing) -> Any:
            if not self._many_in:
                return self._raw(message, *args, **options)
            given = None if request is None else _sent_by(request, method, crossing)
            return self._raw(given, *args, **options)

        requests = _each(request) if self._many_in and request is not None else None
        adapter = _AioAdapter(start, method, requests, many_out=self._many_out)
        return open_deck.perform(call, adapter)


class _AioAdapter(Adapter):
    __slots__ = ("_many_out", "_method", "_requests", "_start")
    streams = True

    def __init__(self, start: Any, method: RpcMethod, requests: Any, *, many_out: bool) -> None:
        self._start, self._method, self._requests, self._many_out = (
            start,
            method,
            requests,
            many_out,
        )

    def live(self, crossing: Crossing) -> Any:
        return self._start(crossing)

    def observe(self, crossing: Crossing, result: Any) -> Any:
        kind = _ObservedAnswers if self._many_out else _ObservedAnswer
        return kind(crossing, result, self._method)

    def serve(self, crossing: Crossing) -> Any:
        kind = _ServedAnswers if self._many_out else _ServedAnswer
        return kind(RpcScript(crossing, self._method), self._requests)


class _ObservedAio(ObservedRpc):
    async def write(self, request: Any) -> None:
        raw = self._method.pack(request)
        self.crossing.chunk(raw, SENT)
        await self._inner.write(raw)

    async def _end(self) -> None:
        inner = self._inner
        initial, trailing = await inner.initial_metadata(), await inner.trailing_metadata()
        rpc.end(
            self.crossing,
            rpc.status_of(await inner.code(), await inner.details(), initial, trailing),
        )

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, sys.modules["grpc.aio"].AioRpcError):
            found: Any = error
            rpc.end(
                self.crossing,
                rpc.status_of(
                    found.code(),
                    found.details(),
                    found.initial_metadata(),
                    found.trailing_metadata(),
                    found.debug_error_string(),
                ),
            )
        else:
            self.crossing.failed(error)


class _ObservedAnswer(_ObservedAio):
    def __await__(self) -> Generator[Any, Any, Any]:
        return self._answer().__await__()

    async def _answer(self) -> Any:
        try:
            raw = await self._inner
        except BaseException as error:
            self._fail(error)
            raise
        self.crossing.chunk(raw, RECEIVED)
        await self._end()
        return self._method.unpack(raw)


class _ObservedAnswers(_ObservedAio):
    def __aiter__(self) -> AsyncIterator[Any]:
        return _iterated(self)

    async def read(self) -> Any:
        try:
            raw = await self._inner.read()
        except BaseException as error:
            self._fail(error)
            raise
        if raw is sys.modules["grpc.aio"].EOF:
            await self._end()
            return raw
        self.crossing.chunk(raw, RECEIVED)
        return self._method.unpack(raw)


async def _iterated(rpc_call: Any) -> AsyncIterator[Any]:
    # Uses our `read`, which reports the messages. The client allows only one of `read` and its own iterator.
    end = sys.modules["grpc.aio"].EOF
    while (message := await rpc_call.read()) is not end:
        yield message


class _ServedAio:
    """A taped RPC."""

    def __init__(self, script: RpcScript, requests: Any) -> None:
        self._script, self._requests = script, requests
        self.crossing = script.crossing
        self._status = rpc.taped_status(script.taped)
        self._is_done = False
        self._value: Any = None

    async def code(self) -> Any:
        return rpc.code_of(self._status)

    async def details(self) -> str:
        return str(self._status.get("details", ""))

    async def initial_metadata(self) -> Any:
        return _metadata(self._status.get("initial"))

    async def trailing_metadata(self) -> Any:
        return _metadata(self._status.get("trailing"))

    async def wait_for_connection(self) -> None:
        """Return at once: a taped RPC has no connection."""

    async def write(self, request: Any) -> None:
        self._script.check(request)

    async def done_writing(self) -> None:
        if self._script.wants_request:
            self._script.missing()

    def cancel(self) -> bool:
        self.crossing.left()
        self._is_done = True
        return True

    def cancelled(self) -> bool:
        return self._status.get("code") == 1

    def done(self) -> bool:
        return self._is_done

    def time_remaining(self) -> None:
        return None

    def add_done_callback(self, callback: Any) -> None:
        callback(self)

    async def _pull(self) -> None:
        script = self._script
        while self._requests is not None and script.wants_request:
            async for message in self._requests:
                script.check(message)
                break
            else:
                script.missing()

    async def _finish(self) -> None:
        script = self._script
        await script.crossing.reach_end_async()
        script.refuse_more()
        self._is_done = True
        status = self._status
        if not status.get("code") and isinstance(script.taped.error, BaseException):
            script.crossing.raised(script.taped.error)
            raise script.taped.error
        rpc.end(script.crossing, status)
        if status.get("code"):
            initial, trailing = _metadata(status.get("initial")), _metadata(status.get("trailing"))
            raise sys.modules["grpc.aio"].AioRpcError(
                rpc.code_of(status), initial, trailing, status.get("details"), status.get("debug")
            )


class _ServedAnswer(_ServedAio):
    def __await__(self) -> Generator[Any, Any, Any]:
        return self._answer().__await__()

    async def _answer(self) -> Any:
        if self._is_done:
            return self._value
        await self._pull()
        following = self._script.following()
        if following is not None:
            self._value = self._script.message(following[1])
        await self._finish()
        return self._value


class _ServedAnswers(_ServedAio):
    def __aiter__(self) -> AsyncIterator[Any]:
        return _iterated(self)

    async def read(self) -> Any:
        await self._pull()
        following = self._script.following()
        if following is not None:
            await self.crossing.reach_async(following[0])
            return self._script.message(following[1])
        if not self._is_done:
            await self._finish()
        return sys.modules["grpc.aio"].EOF


async def _each(requests: Any) -> AsyncIterator[Any]:
    if hasattr(requests, "__aiter__"):
        async for message in requests:
            yield message
    else:
        for message in requests:
            yield message


async def _sent_by(requests: Any, method: RpcMethod, crossing: Crossing) -> AsyncIterator[bytes]:
    async for message in _each(requests):
        raw = method.pack(message)
        crossing.chunk(raw, SENT)
        yield raw


def _metadata(pairs: Any) -> Any:
    return sys.modules["grpc.aio"].Metadata(*rpc.metadata_of(pairs))
