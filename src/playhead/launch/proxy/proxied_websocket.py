"""Pass a WebSocket through the proxy and record its messages, or play the taped peer.

Knows frames and both ends; conversations are in `hooks.websocket.conversation`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from playhead.errors import Divergence
from playhead.hooks.http.exchange import Exchange
from playhead.hooks.http.http1 import AnswerReader, NotHttp
from playhead.hooks.websocket import websocket_frames as frames
from playhead.hooks.websocket.conversation import Conversation, TapedPeer, alike
from playhead.launch.proxy.proxied_request import ProxiedRequest
from playhead.launch.proxy.routes import Origin
from playhead.recording.deck import Taped

if TYPE_CHECKING:
    from playhead.launch.proxy.connection import Client

_PIECE = 64 * 1024
_BROKEN = 1011  # "internal error": the close code of a server that cannot continue


# Code, reason, and which side closed the conversation: `agent` or `peer`.
Close = tuple[int, str, str]


class _Heard:
    """Reports the messages in the bytes of one direction to the conversation."""

    def __init__(self, talk: Conversation, by: str, closes: list[Close]) -> None:
        self._talk = talk
        self._closes = closes
        self._by = by
        self._frames = frames.FrameReader()

    def read(self, data: bytes) -> None:
        say = self._talk.sent if self._by == "agent" else self._talk.received
        for frame in self._frames.read(data):
            if frame.opcode == frames.TEXT:
                say(frame.payload.decode("utf-8", "surrogatepass"))
            elif frame.opcode == frames.BINARY:
                say(frame.payload)
            elif frame.opcode == frames.CLOSE:
                self._closes.append((*frames.decode_close(frame.payload), self._by))


async def live(client: Client, exchange: Exchange, asked: ProxiedRequest, origin: Origin) -> None:
    """Pass on both directions at once, until one side ends the conversation."""
    try:
        reader, data = await client.server.ask(asked, origin, b"")
        answer, raw = AnswerReader(asked.method), data
        while True:
            client.writer.write(data)
            answer.read(data)
            if answer.head is not None:
                break
            data = await reader.read(_PIECE)
            if not data:
                raise ConnectionResetError("the server closed the connection in its handshake")
            raw += data
    except asyncio.CancelledError:
        exchange.left()
        raise
    except (OSError, EOFError, NotHttp) as error:
        exchange.failed(error)
        client.writer.transport.abort()
        return
    exchange.head(*answer.head)
    if answer.head.status != 101:
        await _refused(client, exchange, reader, answer, raw)
        return
    await _talk(client, exchange, reader, raw.partition(b"\r\n\r\n")[2])


async def _refused(
    client: Client,
    exchange: Exchange,
    reader: asyncio.StreamReader,
    answer: AnswerReader,
    raw: bytes,
) -> None:
    """Relay an ordinary answer to its end: the server refused the WebSocket."""
    again = AnswerReader("GET")
    piece = again.read(raw)
    while True:
        if piece:
            exchange.chunk(piece)
        if again.done:
            break
        data = await reader.read(_PIECE)
        if not data:
            break
        client.writer.write(data)
        piece = again.read(data)
    if again.done or answer.end():
        exchange.returned()
    else:
        exchange.cut()


async def _talk(
    client: Client, exchange: Exchange, reader: asyncio.StreamReader, early: bytes
) -> None:
    talk = Conversation(exchange)
    closes: list[Close] = []
    agent, peer = _Heard(talk, "agent", closes), _Heard(talk, "peer", closes)
    peer.read(early)
    server = client.server.writer
    client.when_left(None)
    ways = {
        "agent": asyncio.ensure_future(_pass(client.reader, server, agent)),
        "peer": asyncio.ensure_future(_pass(reader, client.writer, peer)),
    }
    try:
        await asyncio.wait(ways.values(), return_when=asyncio.FIRST_COMPLETED)
        first = "peer" if ways["peer"].done() else "agent"
        if closes:
            talk.closed(*closes[0])
        else:
            _silent(exchange, talk, cut=first == "peer")
    finally:
        for way in ways.values():
            way.cancel()
        await asyncio.gather(*ways.values(), return_exceptions=True)
        exchange.left()  # unless it has ended already


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: _Heard) -> None:
    """Pass on the bytes of one side until it ends."""
    with suppress(ConnectionError):
        while data := await reader.read(_PIECE):
            writer.write(data)
            heard.read(data)
            await writer.drain()


def _silent(exchange: Exchange, talk: Conversation, *, cut: bool) -> None:
    """Record a connection that ended without a close frame, as connections of finished programs do."""
    if cut:
        exchange.cut()
    elif talk.is_at_rest:
        exchange.returned()
    else:
        exchange.left()


def is_talk(answer: Taped) -> bool:
    """Return whether the server agreed to a WebSocket in the recorded run."""
    return answer.head is not None and int(answer.head.get("status", 0)) == 101


async def taped(client: Client, exchange: Exchange, asked: ProxiedRequest) -> None:
    """Play the server's side of a taped conversation."""
    answer = exchange.taped
    if answer is None:
        raise AssertionError("only a taped exchange is served")
    client.writer.write(_handshake(answer, asked.value("sec-websocket-key") or ""))
    headers = [(str(name), str(value)) for name, value in answer.head.get("headers") or ()]
    exchange.head(101, str(answer.head.get("reason") or ""), "HTTP/1.1", headers)
    early = await _first_words(client, answer)
    answer = _rematched(exchange, answer, early)
    talk, peer = Conversation(exchange), TapedPeer(answer)
    closes: list[Close] = []
    agent, said = _Heard(talk, "agent", closes), _Heard(talk, "peer", closes)
    out = peer.begin()
    while True:
        said.read(out)
        client.writer.write(out)
        if peer.over:
            break
        data, early = early or await client.reader.read(_PIECE), b""
        if not data:
            break
        try:
            agent.read(data)
        except Divergence as error:
            crossing = exchange.crossing
            crossing.deck.part(crossing.call, "socket", str(error))
            client.writer.write(frames.encode_close(_BROKEN, str(error)[:120]))
            exchange.cut()
            return
        out = peer.feed(data)
    if closes:
        talk.closed(*closes[0])
    else:
        _silent(exchange, talk, cut=answer.how == "cut")


async def _first_words(client: Client, answer: Taped) -> bytes:
    """Read the bytes that the client sends up to its first message, if the client sends the first message."""
    if not _begins_with_the_agent(answer):
        return b""
    early, reader = b"", frames.FrameReader()
    while data := await client.reader.read(_PIECE):
        early += data
        if any(frame.opcode in {frames.TEXT, frames.BINARY} for frame in reader.read(data)):
            break
    return early


def _rematched(exchange: Exchange, answer: Taped, early: bytes) -> Taped:
    """Return the conversation that begins with the client's first message. All handshakes look the same, and those
    of agents that work side by side arrive in any order.
    """
    spoken = [one for one in frames.FrameReader().read(early) if one.opcode != frames.PING]
    if not spoken:
        return answer

    def fits(other: Taped) -> bool:
        return _begins_with_the_agent(other) and alike(other.pieces[0].data, spoken[0].payload)

    exchange.crossing.deck.rematch(exchange.crossing, fits)
    exchange.taped = exchange.crossing.taped
    return exchange.taped or answer


def _begins_with_the_agent(taped: Taped) -> bool:
    return bool(taped.pieces) and taped.pieces[0].stream.startswith("sent")


def _handshake(answer: Taped, key: str) -> bytes:
    lines = [f"HTTP/1.1 101 {answer.head.get('reason') or 'Switching Protocols'}"]
    for name, value in answer.head.get("headers") or ():
        if str(name).lower() == "sec-websocket-accept":
            lines.append(f"{name}: {frames.accept_key(key)}")
        else:
            lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
