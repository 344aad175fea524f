"""Hook the four methods of a gRPC channel, sync or asyncio. Each returns an object that performs RPCs; the hook
returns an object of ours in its place.

The client's functions for serialisation stay with our object, so the RPC below it carries bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.hooks.grpc.rpc import RpcMethod

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from playhead.hooks.guest import Patches

# The methods of a channel: name, whether requests are a stream, whether answers are a stream.
_METHODS = (
    ("unary_unary", False, False),
    ("unary_stream", False, True),
    ("stream_unary", True, False),
    ("stream_stream", True, True),
)


def hook_channel(channel: type, patches: Patches, made: Callable[..., Any]) -> None:
    """Hook a class of channels. `made(plain, raw, method, many_in=…, many_out=…)` returns the object that performs
    RPCs: `plain` is the client's own object, and `raw` is one that carries bytes.
    """
    for name, many_in, many_out in _METHODS:
        patches.replace(channel, name, _around(made, many_in=many_in, many_out=many_out))
    patches.replace(channel, "__init__", _init)


def _init(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, target: Any, *args: Any, **options: Any) -> None:  # noqa: N807
        self._playhead_target = target.decode() if isinstance(target, bytes) else str(target)
        original(self, target, *args, **options)

    return __init__


def _around(made: Callable[..., Any], *, many_in: bool, many_out: bool) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        def make(
            self: Any,
            method: Any,
            request_serializer: Any = None,
            response_deserializer: Any = None,
            *args: Any,
            **options: Any,
        ) -> Any:
            plain = original(
                self, method, request_serializer, response_deserializer, *args, **options
            )
            raw = original(self, method, None, None, *args, **options)
            target = getattr(self, "_playhead_target", "")
            described = RpcMethod(target, method, request_serializer, response_deserializer)
            return made(plain, raw, described, many_in=many_in, many_out=many_out)

        return make

    return wrap
