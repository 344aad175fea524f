"""aiohttp beyond what every client does: many at once, decompression, timeouts, kept connections."""

import asyncio
import io
import json

import aiohttp
import pytest

from playhead.testing import HttpSite


def run(ask, *args):
    async def within_a_session():
        async with aiohttp.ClientSession() as session:
            return await ask(session, *args)

    return asyncio.run(within_a_session())


def test_fifty_streams_at_once_keep_their_own_pieces(site, studio):
    async def read(session, url, number):
        async with session.get(f"{url}/sse?n=5&gap_ms=3&number={number}") as got:
            return [piece async for piece in got.content.iter_any()]

    async def ask(session, url):
        return await asyncio.gather(*(read(session, url, number) for number in range(50)))

    with studio.record() as take:
        recorded = run(ask, site.url)
    assert len(take.calls) == 50
    assert {call.how for call in take.calls} == {"returned"}
    told = {call.call["request"]["url"]: call.body for call in take.calls}
    for number, pieces in enumerate(recorded):
        assert told[f"{site.url}/sse?n=5&gap_ms=3&number={number}"] == b"".join(pieces)
    url = site.url
    site.stop()
    with studio.replay(take) as mode:
        replayed = run(ask, url)
    assert [b"".join(pieces) for pieces in replayed] == [b"".join(pieces) for pieces in recorded]
    assert mode.left == []


def test_a_compressed_body_is_on_the_tape_compressed(site, studio):
    async def ask(session, url):
        async with session.get(f"{url}/gzip") as got:
            return await got.json()

    with studio.record() as take:
        recorded = run(ask, site.url)
    assert take.call.body[:2] == b"\x1f\x8b"
    url = site.url
    site.stop()
    with studio.replay(take):
        assert run(ask, url) == recorded


def test_the_chunks_of_the_sender_are_seen_again(site, studio):
    async def ask(session, url):
        async with session.get(f"{url}/bytes?n=20000&chunk=700") as got:
            return [(len(piece), whole) async for piece, whole in got.content.iter_chunks()]

    with studio.record() as take:
        recorded = run(ask, site.url)
    url = site.url
    site.stop()
    with studio.replay(take):
        replayed = run(ask, url)
    assert len(ends_of(recorded)) > 20
    assert ends_of(replayed) == ends_of(recorded)


def ends_of(chunks):
    """Where the sender's chunks ended, in bytes from the start. The last end comes twice where the empty
    chunk that ends the body came in a packet of its own: that is TCP's to decide, and not on the tape.
    """
    at, ends = 0, []
    for size, whole in chunks:
        at += size
        if whole:
            ends.append(at)
    return [*dict.fromkeys(ends)]


def test_a_total_timeout_is_raised_again_at_once(site, studio):
    async def ask(session, url):
        with pytest.raises(asyncio.TimeoutError) as raised:
            await session.get(f"{url}/hold", timeout=aiohttp.ClientTimeout(total=0.5))
        return type(raised.value)

    with studio.record() as take:
        recorded = run(ask, site.url)
    assert take.call.how == "raised"
    url = site.url
    site.stop()
    with studio.replay(take):
        assert run(ask, url) is recorded


def test_a_socket_timeout_in_a_stream_is_raised_again(site, studio):
    async def ask(session, url):
        seen = []
        # Longer than a busy machine takes for the head and the first two pieces.
        timeout = aiohttp.ClientTimeout(sock_read=1)
        async with session.get(f"{url}/cut?after=2&how=stall", timeout=timeout) as got:
            with pytest.raises(aiohttp.SocketTimeoutError):
                await read_into(seen, got)
        return b"".join(seen)

    with studio.record() as take:
        recorded = run(ask, site.url)
    assert take.call.how == "cut"
    url = site.url
    site.stop()
    with studio.replay(take):
        assert run(ask, url) == recorded


async def read_into(seen, got):
    async for piece in got.content.iter_any():
        seen.append(piece)


def test_a_connection_kept_since_before_the_hook_is_heard(site, studio):
    async def ask(session, url):
        async with session.get(f"{url}/echo") as got:
            await got.read()
        with studio.record() as take:
            async with session.get(f"{url}/echo?n=2") as got:
                body = await got.read()
        async with session.get(f"{url}/echo") as got:
            await got.read()
        return take, body

    take, body = run(ask, site.url)
    assert take.call.body == body


def test_a_post_that_waits_for_100_continue_is_served(site, studio):
    async def ask(session, url):
        async with session.post(f"{url}/upload", data=b"hello", expect100=True) as got:
            return await got.json()

    with studio.record() as take:
        recorded = run(ask, site.url)
    assert recorded["length"] == 5
    url = site.url
    site.stop()
    with studio.replay(take):
        assert run(ask, url) == recorded


def test_a_request_that_is_tried_again_by_the_client_is_tried_again(studio):
    async def once(exchange):
        if len(served.requests) == 2:
            await exchange.end("close")
        else:
            await exchange.answer_json(200, {"number": len(served.requests)})

    async def ask(session, url):
        async with session.get(f"{url}/once") as got:
            first = await got.json()
        async with session.get(f"{url}/once") as got:
            return first, await got.json()

    with HttpSite({"/once": once}) as served:
        url = served.url
        with studio.record() as take:
            recorded = run(ask, url)
    assert recorded == ({"number": 1}, {"number": 3})
    assert [call.how for call in take.calls] == ["returned", "raised", "returned"]
    with studio.replay(take) as mode:
        assert run(ask, url) == recorded
    assert mode.left == []


def test_compressed_uploads_and_forms_are_served(site, studio):
    async def ask(session, url):
        answers = []
        for asked in (
            {"data": {"a": "1"}},
            {"json": {"a": 1}},
            {"data": b"x" * 2000, "compress": True},
            {"data": aiohttp.FormData({"file": io.BytesIO(b"bytes")})},
        ):
            async with session.post(f"{url}/upload", **asked) as got:
                answers.append((await got.json())["chunked"])
        return answers

    with studio.record() as take:
        recorded = run(ask, site.url)
    first = take.calls[0].call["request"]
    assert first["body"] == {"text": "a=1"}
    assert json.loads(take.calls[1].call["request"]["body"]["text"]) == {"a": 1}
    assert b"".join(take.calls[2].stream("sent")) == b"x" * 2000
    assert recorded[2] is True


def test_an_abandoned_answer_was_left(site, studio):
    async def ask(session, url):
        got = await session.get(f"{url}/endless")
        await got.content.readany()
        got.close()

    with studio.record() as take:
        run(ask, site.url)
    assert take.call.how == "left"
