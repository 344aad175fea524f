"""A WebSocket through the proxy: frames as they come, messages onto the tape; or a taped peer.

Knows frames and both ends; what a conversation is lives in `boundaries.websocket_talk`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from playhead.errors import Divergence
from playhead.hooks.http.exchange import Exchange
from playhead.hooks.http.http1 import AnswerReader, NotHttp
from playhead.hooks.websocket import websocket_frames as frames
from playhead.hooks.websocket.conversation import Talk, TapedPeer
from playhead.launch.proxy import talks
from playhead.launch.proxy.proxied_request import Asked
from playhead.launch.proxy.routes import Origin
from playhead.recording import deck
from playhead.recording.deck import Taped
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.replay.report.divergence import Parting

if TYPE_CHECKING:
    from playhead.launch.proxy.connection import Client

_PIECE = 64 * 1024
_BROKEN = 1011  # "internal error": what a server says that cannot go on


# Code, reason, and who says goodbye: `agent` or `peer`.
Close = tuple[int, str, str]


class _Heard:
    """The messages within one direction's bytes."""

    def __init__(self, talk: Talk, by: str, closes: list[Close]) -> None:
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


async def live(client: Client, exchange: Exchange, asked: Asked, origin: Origin) -> None:
    """Both directions at once, until one side ends it."""
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
    """No WebSocket after all: an ordinary answer, to its end."""
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
    talk = Talk(exchange)
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
        exchange.left()  # unless it has ended by now


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: _Heard) -> None:
    """Until this side says no more."""
    with suppress(ConnectionError):
        while data := await reader.read(_PIECE):
            writer.write(data)
            heard.read(data)
            await writer.drain()


def _silent(exchange: Exchange, talk: Talk, *, cut: bool) -> None:
    """A connection that ended without a word of goodbye, as programs do that are finished."""
    if cut:
        exchange.cut()
    elif talk.is_at_rest:
        exchange.returned()
    else:
        exchange.left()


def is_talk(answer: Taped) -> bool:
    """Whether the server agreed to a WebSocket then."""
    return answer.head is not None and int(answer.head.get("status", 0)) == 101


async def taped(client: Client, exchange: Exchange, asked: Asked) -> None:
    """The server's side of a taped conversation."""
    answer = exchange.taped
    if answer is None:
        raise AssertionError("only a taped exchange is served")
    client.writer.write(_handshake(answer, asked.value("sec-websocket-key") or ""))
    headers = [(str(name), str(value)) for name, value in answer.head.get("headers") or ()]
    exchange.head(101, str(answer.head.get("reason") or ""), "HTTP/1.1", headers)
    early = await _first_words(client, answer)
    answer = exchange.taped = _meant(answer, early)
    talk, peer = Talk(exchange), TapedPeer(answer)
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
            _part(exchange, error)
            client.writer.write(frames.encode_close(_BROKEN, str(error)[:120]))
            exchange.cut()
            return
        out = peer.feed(data)
    if closes:
        talk.closed(*closes[0])
    else:
        _silent(exchange, talk, cut=answer.how == "cut")


async def _first_words(client: Client, answer: Taped) -> bytes:
    """What the client says up to its first message, where it is the client who speaks first."""
    if not talks.begins_with_the_agent(answer):
        return b""
    early, reader = b"", frames.FrameReader()
    while data := await client.reader.read(_PIECE):
        early += data
        if any(frame.opcode in {frames.TEXT, frames.BINARY} for frame in reader.read(data)):
            break
    return early


def _meant(answer: Taped, early: bytes) -> Taped:
    spoken = [one for one in frames.FrameReader().read(early) if one.opcode != frames.PING]
    open_deck = deck.active()
    if not spoken or open_deck is None or not isinstance(open_deck.mode, ReplayMode):
        return answer
    return talks.meant(open_deck.mode, answer, spoken[0].payload)


def _handshake(answer: Taped, key: str) -> bytes:
    lines = [f"HTTP/1.1 101 {answer.head.get('reason') or 'Switching Protocols'}"]
    for name, value in answer.head.get("headers") or ():
        if str(name).lower() == "sec-websocket-accept":
            lines.append(f"{name}: {frames.accept_key(key)}")
        else:
            lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _part(exchange: Exchange, error: Divergence) -> None:
    """On the tape of the replay, and so in its report."""
    open_deck = deck.active()
    if open_deck is not None and isinstance(open_deck.mode, ReplayMode):
        name = exchange.name
        open_deck.mode.part(Parting(kind="socket", boundary="llm", name=name, detail=str(error)))
