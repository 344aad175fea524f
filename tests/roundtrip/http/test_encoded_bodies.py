"""Secrets in compressed bodies: none reach the tape, and a replay gives each client a body that it can decode."""

import asyncio
import base64
import gzip
import json
import re
import zlib

import brotli
import pytest
import zstandard

from playhead.llm.http_headers import _DECODERS, undo
from playhead.redact.encoded_bodies import EncodedBodyCleaner, cleaned_body
from playhead.testing import HttpSite

SECRET = b"sk-ant-api03-AbC1dEf2GhI3jKl4MnO5pQr6StU7vWx8"
BODY = json.dumps({"text": "naïve", "key": SECRET.decode(), "more": list(range(400))}).encode()
ENCODE = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "gzip, deflate": lambda raw: zlib.compress(gzip.compress(raw)),
}
DECODE = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": lambda raw: zstandard.ZstdDecompressor().decompressobj().decompress(raw),
    "gzip, deflate": lambda raw: gzip.decompress(zlib.decompress(raw)),
}


def route(encoding, body, *, pieces):
    raw = ENCODE[encoding](body)

    async def answer(exchange):
        headers = [("content-type", "application/json"), ("content-encoding", encoding)]
        if pieces == 1:
            await exchange.answer(200, raw, headers)
            return
        size = -(-len(raw) // pieces)
        await exchange.open_stream(200, headers)
        for at in range(0, len(raw), size):
            await exchange.send(raw[at : at + size])
            await asyncio.sleep(0.01)
        await exchange.finish()

    return answer


def on_tape(take) -> bytes:
    """Everything on the tape, every base64 text in it decoded, and every body decompressed."""
    raw = b"".join(one.read_bytes() for one in take.run.rglob("*") if one.is_file())
    found = [raw, *(call.body for call in take.calls)]
    texts = re.findall(rb'"b64": ?"([A-Za-z0-9+/=]+)"', raw)
    found += [base64.b64decode(text) for text in texts]
    for body in found[1:]:
        for decode in DECODE.values():
            try:
                found.append(decode(body))
            except Exception:  # noqa: BLE001  not in this encoding
                continue
    return b"\n".join(found)


@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_secret_in_a_compressed_answer_is_not_on_the_tape(
    program, studio, redactor, encoding, pieces
):
    with HttpSite({"/x": route(encoding, BODY, pieces=pieces)}) as site:
        url = f"{site.url}/x"
        with studio.record(redactor=redactor) as take:
            seen = []
            program.pieces(url, seen)
    assert DECODE[encoding](b"".join(seen)) == BODY
    told = on_tape(take)
    assert SECRET not in told
    assert b"sk-ant-api03-redacted0anthropic0" in told
    with studio.serve(take, redactor):
        again = []
        program.pieces(url, again)
    plain = json.loads(DECODE[encoding](b"".join(again)))
    assert plain["key"].startswith("sk-ant-api03-redacted0anthropic0")
    assert plain["text"] == "naïve"


def test_a_compressed_answer_without_a_secret_stays_as_it_came(program, studio, redactor):
    body = BODY.replace(SECRET, b"nothing")
    with (
        HttpSite({"/x": route("gzip", body, pieces=4)}) as site,
        studio.record(redactor=redactor) as take,
    ):
        seen = []
        program.pieces(f"{site.url}/x", seen)
    assert take.call.body == b"".join(seen)


@pytest.mark.parametrize("encoding", ENCODE)
@pytest.mark.parametrize("cuts", [1, 2, 7])
def test_every_encoding_is_looked_into_however_the_body_is_cut(redactor, encoding, cuts):
    raw = ENCODE[encoding](BODY)
    size = -(-len(raw) // cuts)
    cleaner = EncodedBodyCleaner(redactor, encoding, undo)
    made = []
    for at in range(0, len(raw), size):
        made += cleaner.feed([(raw[at : at + size], at)])
    made += cleaner.feed([], last=True)
    plain = DECODE[encoding](b"".join(piece for piece, _ in made))
    assert SECRET not in plain
    assert json.loads(plain)["text"] == "naïve"
    assert len(made) == cuts


@pytest.mark.parametrize("encoding", ENCODE)
def test_equal_compressed_requests_stay_equal(redactor, encoding):
    one = cleaned_body(redactor, encoding, ENCODE[encoding](BODY), undo)
    assert one == cleaned_body(redactor, encoding, ENCODE[encoding](BODY), undo)
    assert SECRET not in DECODE[encoding](one)


# Names of their own: gzip writes the time into its header, and two workers must collect the same tests.
@pytest.mark.parametrize(
    "raw", [b"", b"rubbish", gzip.compress(BODY)[:40]], ids=["empty", "rubbish", "cut short"]
)
def test_a_body_that_cannot_be_decoded_is_kept(redactor, raw):
    assert cleaned_body(redactor, "gzip", raw, undo) == raw
    assert cleaned_body(redactor, "unheard-of", raw, undo) == raw


def test_a_secret_in_a_compressed_request_is_not_on_the_tape(studio, redactor):
    import httpx

    with HttpSite() as site, studio.record(redactor=redactor) as take:
        httpx.post(
            f"{site.url}/echo", content=gzip.compress(BODY), headers={"content-encoding": "gzip"}
        )
    body = take.call.call["request"]["body"]
    plain = gzip.decompress(base64.b64decode(body["b64"]))
    assert SECRET not in plain
    assert b"sk-ant-api03-redacted0anthropic0" in plain


def zstd_frames(raw):
    """As a server sends them that flushes."""
    return b"".join(ENCODE["zstd"](raw[at : at + 50]) for at in range(0, len(raw), 50))


def test_a_secret_in_any_frame_of_zstd_is_found(redactor):
    raw = zstd_frames(BODY)
    clean = cleaned_body(redactor, "zstd", raw, undo)
    assert undo("zstd", raw).body == BODY
    assert clean != raw
    assert SECRET not in undo("zstd", clean).body


@pytest.mark.parametrize("first", [b"{", b"[", b":"])
def test_a_compressed_body_whose_first_byte_looks_like_json_is_decoded(
    redactor, first, monkeypatch
):
    """Brotli streams may begin with any byte: an encoding of our own that does so."""
    hidden = bytes(one ^ 0xFF for one in BODY)
    monkeypatch.setitem(_DECODERS, "test", lambda raw: bytes(one ^ 0xFF for one in raw[1:]))
    assert undo("test", first + hidden).body == BODY


@pytest.mark.parametrize("body", [b'{"a": "\xe4\xf6"}', "{'a': 'ä'}".encode(), b"[1]", b""])
def test_a_body_that_the_client_has_decoded_already_stays(body):
    assert undo("gzip", body).body == body
