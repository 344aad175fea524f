"""Answer a client of the proxy from the tape, with the same pieces and the same end, or refuse it.

A refusal has status 400 and `x-should-retry: false`: agents retry any other error for minutes.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from playhead.hooks.http import http1
from playhead.hooks.http.exchange import Exchange
from playhead.hooks.http.served import PATIENCE_S, SLOW_NS
from playhead.launch.proxy.live import LAST_BYTES_S
from playhead.launch.proxy.proxied_request import ProxiedRequest
from playhead.recording.calls import SIDE, Taped
from playhead.replay import answer_order
from playhead.replay.answer_order import AnswerOrder

if TYPE_CHECKING:
    from playhead.launch.proxy.connection import Client


def diverged(url: str, message: str) -> bytes:
    """The replay has no answer to this request. The message has the form of errors of the requested API."""
    error = {"type": "invalid_request_error", "message": message, "code": "playhead_divergence"}
    body: dict[str, object] = {"type": "error", "error": error}
    if "/v1beta" in url or ":generateContent" in url or ":streamGenerateContent" in url:
        body = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    return _answer("400 Bad Request", json.dumps(body))


def bad_request(why: str) -> bytes:
    return _answer("400 Bad Request", json.dumps({"error": {"message": f"playhead: {why}"}}))


def nothing(method: str, *, is_llm: bool) -> bytes:
    """Return an empty answer, for side traffic that is not on the tape."""
    if is_llm:
        return diverged("", "This side request is not on the tape; nothing depends on it.")
    if method == "HEAD":
        return b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    return _answer("200 OK", "{}")


def _answer(status: str, body: str) -> bytes:
    raw = body.encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-should-retry: false\r\n"
        f"content-length: {len(raw)}\r\n"
    )
    close = "" if status.startswith("200") else "connection: close\r\n"
    return f"{head}{close}\r\n".encode() + raw


async def answer(client: Client, exchange: Exchange, asked: ProxiedRequest) -> bool:
    """Return whether the connection can be used again."""
    taped = exchange.taped
    if taped is None:
        raise AssertionError("only a taped exchange is served")
    order = answer_order.current
    if order is None or taped.match.get("rung") == SIDE:
        return await _give_answer(client, exchange, asked, taped, None)
    order.begin(taped.match.get("of"))
    try:
        return await _give_answer(client, exchange, asked, taped, order)
    finally:
        order.end(taped.match.get("of"))


async def _give_answer(
    client: Client,
    exchange: Exchange,
    asked: ProxiedRequest,
    taped: Taped,
    order: AnswerOrder | None,
) -> bool:
    if order is not None:
        first = taped.pieces[0].at_ns if taped.pieces else taped.took_ns
        await order.wait_async(taped.match.get("of"), first)
    if taped.head is None:
        return await _headless(client, exchange, asked, taped)
    if not await _late(client, exchange, taped):
        return False
    _tell_head(exchange, taped)
    whole = taped.how == "returned"
    points = [at for at, piece in enumerate(taped.pieces) if piece.stream == "body"]
    pieces = [taped.pieces[at] for at in points]
    data = [piece.data for piece in pieces]
    blocks = http1.blocks(taped.head, data, whole=whole, sizes=taped.facts.get("sizes") or ())
    at = 0
    try:
        for number, block in enumerate(blocks):
            # The head, then a block for each piece, and maybe one that ends a chunked body.
            if 1 <= number <= len(pieces):
                await exchange.crossing.reach_async(points[number - 1])
                if order is not None:
                    await order.wait_async(taped.match.get("of"), pieces[number - 1].at_ns)
                if client.paced:
                    await asyncio.sleep(max(0, pieces[number - 1].at_ns - at) / 1e9)
                    at = pieces[number - 1].at_ns
            client.writer.write(block)
            if 1 <= number <= len(pieces):
                exchange.chunk(pieces[number - 1].data)
            await client.writer.drain()
    except ConnectionError:
        exchange.left()
        raise
    return await _end(client, exchange, asked, taped)


async def _end(client: Client, exchange: Exchange, asked: ProxiedRequest, taped: Taped) -> bool:
    if taped.how == "returned":
        exchange.returned()
        words = " ".join(
            str(v).lower() for n, v in taped.head["headers"] if n.lower() == "connection"
        )
        framed = any(str(name).lower() in _FRAMING for name, _ in taped.head["headers"])
        return asked.keeps_alive and "close" not in words and framed
    if taped.how == "left":
        # The agent gave up in the recorded run, and will do so again. But a replay must never hang.
        await _until_left(client, exchange)
        exchange.left()
        return False
    last = max((piece.at_ns for piece in taped.pieces), default=0)
    await asyncio.sleep(min(max(LAST_BYTES_S, (taped.took_ns - last) / 1e9), _LONGEST_S))
    if taped.error is not None:
        exchange.failed(taped.error)
        client.writer.transport.abort()
    else:
        exchange.cut()
    return False


_LONGEST_S = 1.0
_FRAMING = ("content-length", "transfer-encoding")


async def _headless(
    client: Client, exchange: Exchange, asked: ProxiedRequest, taped: Taped
) -> bool:
    """Handle a taped call whose response never began: the connection failed, or the agent stopped waiting, or it
    is side traffic.
    """
    if taped.how == "left":
        await _until_left(client, exchange)
        exchange.left()
        return False
    if taped.how == "returned":
        client.writer.write(nothing(asked.method, is_llm=exchange.is_llm))
        exchange.returned()
        return asked.keeps_alive
    error = taped.error if isinstance(taped.error, Exception) else ConnectionResetError()
    exchange.failed(error)
    client.writer.transport.abort()
    return False


async def _late(client: Client, exchange: Exchange, taped: Taped) -> bool:
    """If an answer is slow on purpose, wait. Return whether the client waited, too."""
    slow = taped.facts.get(SLOW_NS)
    if not isinstance(slow, int) or not await _has_left_within(client, slow / 1e9):
        return True
    if taped.give_back is not None:
        taped.give_back()
    exchange.left()
    return False


async def _until_left(client: Client, exchange: Exchange) -> None:
    """Wait until the agent leaves, as in the recorded run: on its own, or because it was killed."""
    open_deck = exchange.crossing.deck
    kill = open_deck.ends_command
    if kill is not None and open_deck.was_killed_here:
        await asyncio.sleep(4 * LAST_BYTES_S)  # time for the agent to use what it has received
        kill()
    await _has_left_within(client, PATIENCE_S)


async def _has_left_within(client: Client, seconds: float) -> bool:
    left = asyncio.Event()
    client.when_left(left.set)
    try:
        if not client.has_left:
            await asyncio.wait_for(left.wait(), seconds)
    except asyncio.TimeoutError:
        return False
    finally:
        client.when_left(None)
    return True


def _tell_head(exchange: Exchange, taped: Taped) -> None:
    head = taped.head
    headers = [(str(name), str(value)) for name, value in head.get("headers") or ()]
    version = str(head.get("http_version") or "HTTP/1.1")
    exchange.head(int(head["status"]), str(head.get("reason") or ""), version, headers)
