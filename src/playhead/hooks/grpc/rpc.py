"""Describe one RPC: its call, its messages and its status. The sync and the async client share this.

Knows gRPC's metadata and status; does not know channels. Messages are bytes, as the client has serialised them.
"""

from __future__ import annotations

import base64
import sys
import weakref
from typing import TYPE_CHECKING

from playhead.errors import Divergence
from playhead.recording import deck

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, NoReturn

    from playhead.recording.calls import Call, Taped
    from playhead.recording.crossing import Crossing
    from playhead.recording.recorder import Recorder

SENT, RECEIVED = "sent.bytes", "received.bytes"
_LARGEST_SHOWN = 4096


class RpcFailure(Exception):
    """Holds the status of a failed RPC for the tape. The program gets the client's own exception."""


class RpcMethod:
    """A method of a service at one address, with the client's functions for its messages."""

    def __init__(self, target: str, name: Any, serialise: Any, deserialise: Any) -> None:
        self.target = target
        self.name = name.decode() if isinstance(name, bytes) else str(name)
        self._serialise = serialise
        self._deserialise = deserialise

    def pack(self, message: Any) -> bytes:
        """Serialise a message. Maps of Protocol Buffers have no order, so request a fixed one: a replay then sends
        the same bytes.
        """
        serialise = self._serialise
        if serialise is None:
            return bytes(message)
        if getattr(serialise, "__name__", "") == "SerializeToString":
            try:
                return bytes(serialise(message, deterministic=True))
            except TypeError:
                pass  # another library's method of that name, which has no such option
        return bytes(serialise(message))

    def unpack(self, raw: bytes) -> Any:
        return raw if self._deserialise is None else self._deserialise(raw)

    def call(self, metadata: Any, message: bytes | None, shown: Any = None) -> Call:
        """Return the call. `message` is a single request; the requests of a stream follow as pieces."""
        request: dict[str, Any] = {"to": self.target}
        if message is not None:
            request["message"] = message
        facts: dict[str, Any] = {"library": "grpc", "method": self.name}
        if metadata:
            facts["metadata"] = dict(plain(metadata))
        if hasattr(shown, "DESCRIPTOR") and message is not None and len(message) <= _LARGEST_SHOWN:
            facts["shown"] = str(shown)
        return deck.Call(boundary="grpc", name=self.name.lstrip("/"), request=request, facts=facts)


def plain(metadata: Any) -> list[list[str]]:
    """Return metadata as text, with binary values in base64, as HTTP/2 sends them."""
    return [
        [str(key), base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)]
        for key, value in metadata or ()
    ]


def metadata_of(metadata: Any) -> tuple[tuple[str, Any], ...]:
    pairs = metadata if isinstance(metadata, list) else []
    return tuple(
        (key, base64.b64decode(value) if str(key).endswith("-bin") else value)
        for key, value in pairs
    )


def status_of(
    code: Any, details: Any, initial: Any, trailing: Any, debug: Any = None
) -> dict[str, Any]:
    number = code.value[0] if code is not None else 0
    status = {"code": number, "details": details or ""}
    status.update(initial=plain(initial), trailing=plain(trailing))
    if debug:
        status["debug"] = str(debug)
    return status


def code_of(status: dict[str, Any]) -> Any:
    for code in sys.modules["grpc"].StatusCode:
        if code.value[0] == status.get("code"):
            return code
    return sys.modules["grpc"].StatusCode.UNKNOWN


def end(crossing: Crossing, status: dict[str, Any]) -> None:
    """Report that the RPC has ended with this status."""
    if status["code"]:
        words = f"{code_of(status).name}: {status['details']}"
        crossing.raised(RpcFailure(words), status=status)
    else:
        crossing.returned(status=status)


def taped_status(taped: Taped) -> dict[str, Any]:
    status = taped.facts.get("status")
    return status if isinstance(status, dict) else {"code": 0, "details": ""}


class ObservedRpc:
    """A live RPC of the client. Reports messages and the status, and passes everything else through."""

    def __init__(self, crossing: Crossing, inner: Any, method: RpcMethod) -> None:
        self.crossing = crossing
        self._inner = inner
        self._method = method
        keep(self, crossing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __del__(self) -> None:
        self.crossing.left()  # ignored where it has ended

    def cancel(self) -> Any:
        self.crossing.left()
        return self._inner.cancel()


class RpcScript:
    """The taped messages of both sides, and how far the replay has played them."""

    def __init__(self, crossing: Crossing, method: RpcMethod) -> None:
        self.crossing = crossing
        self._method = method
        if crossing.taped is None:
            raise AssertionError("only a taped RPC is served")
        self.taped = crossing.taped
        self._pieces = [
            (index, piece)
            for index, piece in enumerate(self.taped.pieces)
            if piece.stream in (SENT, RECEIVED)
        ]
        self._at = 0

    @property
    def wants_request(self) -> bool:
        """The program sent the next message on the tape."""
        return self._at < len(self._pieces) and self._pieces[self._at][1].stream == SENT

    @property
    def has_more(self) -> bool:
        return any(piece.stream == RECEIVED for _, piece in self._pieces[self._at :])

    def check(self, message: Any) -> None:
        """Compare a message that the program sends with the tape; raise a Divergence if it differs."""
        raw = self._method.pack(message)
        redactor = self.crossing.deck.recorder.redactor
        cleaned = raw if redactor is None else redactor.clean_bytes(raw)
        # On the tape, answers may precede this message that the program has not read yet in this replay.
        at = next(
            (n for n in range(self._at, len(self._pieces)) if self._pieces[n][1].stream == SENT),
            None,
        )
        if at is not None and self._pieces[at][1].data == cleaned:
            self.crossing.chunk(raw, SENT)
            del self._pieces[at]
            return
        has = repr(self._pieces[at][1].data[:80]) if at is not None else "nothing more"
        words = (
            f"{self.crossing.call.name}: the program sends {cleaned[:80]!r}, and its tape has {has}"
        )
        self.crossing.deck.part(self.crossing.call, "grpc", words)
        raise Divergence(words)

    def pull(self, requests: Iterator[Any] | None) -> None:
        """Take the requests from the program that it sent before the next answer on the tape."""
        while requests is not None and self.wants_request:
            try:
                message = next(requests)
            except StopIteration:
                self.missing()
            self.check(message)

    def missing(self) -> NoReturn:
        words = f"{self.crossing.call.name}: the program sends fewer messages than its tape has"
        self.crossing.deck.part(self.crossing.call, "grpc", words)
        raise Divergence(words)

    def following(self) -> tuple[int, bytes] | None:
        """Return the index on the tape and the bytes of the next answer."""
        while self._at < len(self._pieces):
            index, piece = self._pieces[self._at]
            self._at += 1
            if piece.stream == RECEIVED:
                return index, piece.data
        return None

    def message(self, raw: bytes) -> Any:
        self.crossing.chunk(raw, RECEIVED)
        return self._method.unpack(raw)

    def refuse_more(self) -> None:
        if self.taped.how == "left":
            name = self.crossing.call.name
            raise Divergence(
                f"On the tape the agent stopped reading from {name} here; now it requests more messages."
            )
        if self.taped.how == "cut":
            self.crossing.cut()  # the run was killed here


def sent_by(requests: Iterable[Any], method: RpcMethod, crossing: Crossing) -> Iterator[bytes]:
    """Yield the requests of a stream as bytes. Each is reported when the client takes it."""
    for message in requests:
        raw = method.pack(message)
        crossing.chunk(raw, SENT)
        yield raw


# RPCs that have not ended. A program may exit, or drop them without reading them to the end.
_open: weakref.WeakSet[Any] = weakref.WeakSet()
_watched: weakref.WeakSet[Recorder] = weakref.WeakSet()


def keep(rpc: Any, crossing: Crossing) -> None:
    """Report the RPC as left if the process ends before the RPC does."""
    _open.add(rpc)
    recorder = crossing.deck.recorder
    if recorder not in _watched:
        _watched.add(recorder)
        recorder.last_words.append(_leave_all)


def _leave_all() -> None:
    for rpc in list(_open):
        rpc.crossing.left()
    _open.clear()
