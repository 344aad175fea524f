import gzip
import importlib
import zlib

import pytest

from playhead.llm import http_headers
from playhead.llm.http_headers import undo

BODY = b'{"text": "' + bytes(range(32, 127)).replace(b'"', b"").replace(b"\\", b"") * 50 + b'"}'


def raw_deflate(body: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(body) + stream.flush()


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("gzip", gzip.compress),
        ("X-GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
        ("identity", bytes),
        (None, bytes),
        ("", bytes),
        ("deflate, gzip", lambda body: gzip.compress(zlib.compress(body))),
    ],
)
def test_standard_encodings_are_undone(name, encode):
    assert undo(name, encode(BODY)).body == BODY


def test_several_gzip_members_are_one_body():
    assert undo("gzip", gzip.compress(BODY) + gzip.compress(b"more")).body == BODY + b"more"


def test_padding_after_gzip_is_ignored():
    assert undo("gzip", gzip.compress(BODY) + b"\0\0\0").body == BODY


@pytest.mark.parametrize("encode", [gzip.compress, zlib.compress])
def test_a_cut_body_gives_all_that_can_be_had(encode):
    name = "gzip" if encode is gzip.compress else "deflate"
    whole = encode(BODY)
    lengths = []
    for end in range(len(whole)):
        plain = undo(name, whole[:end])
        assert BODY.startswith(plain.body)
        lengths.append(len(plain.body))
    assert lengths == sorted(lengths)
    assert lengths[-1] > len(BODY) // 2


def test_a_body_that_was_undone_already_is_left_as_it_is():
    assert undo("gzip", BODY).body == BODY
    assert undo("br", b"event: x\ndata: {}\n\n").body == b"event: x\ndata: {}\n\n"
    assert undo("zstd", b"").body == b""


def test_an_unknown_encoding_is_named():
    plain = undo("rot13", b"\x00")
    assert plain.body == b""
    assert plain.reason == "unknown content encoding 'rot13'"


def test_rubbish_is_refused_with_the_reason():
    plain = undo("gzip", b"\x00rubbish")
    assert plain.body == b""
    assert plain.reason is not None
    assert plain.reason.startswith("content encoding gzip: ")


def test_a_bomb_does_not_go_off(monkeypatch):
    monkeypatch.setattr(http_headers, "MOST_BYTES", 100_000)
    plain = undo("gzip", gzip.compress(bytes(10_000_000)))
    assert plain.body == b""
    assert "more than 100000 bytes" in (plain.reason or "")


@pytest.mark.parametrize(
    ("name", "libraries"),
    [
        ("br", "brotli, brotlicffi"),
        ("zstd", "compression.zstd, backports.zstd, zstandard"),
    ],
)
def test_an_encoding_without_a_library_here_says_which_would_do(monkeypatch, name, libraries):
    def missing(wanted):
        raise ImportError(wanted)

    monkeypatch.setattr(http_headers, "import_module", missing)
    plain = undo(name, b"\x28\xb5\x2f\xfdwhatever")
    assert plain.body == b""
    assert plain.reason == (
        f"content encoding {name}: cannot be decoded here (none of {libraries} is installed)"
    )


def test_zstd_is_undone_where_a_library_is_installed():
    zstandard = importlib.import_module("zstandard")
    packed = zstandard.ZstdCompressor().compress(BODY)
    assert undo("zstd", packed).body == BODY
    assert BODY.startswith(undo("zstd", packed[:-5]).body)
    assert undo("zstd", b"\x28\xb5\x2f\xfdrubbish").reason


class OneShotBrotli:
    """A decompressor of the shape that the brotli package has."""

    class Decompressor:
        def process(self, piece: bytes) -> bytes:
            if b"!" in piece:
                raise ValueError("corrupt")
            return piece.replace(b"~", b"")


def test_brotli_is_undone_where_a_library_is_installed(monkeypatch):
    monkeypatch.setattr(http_headers, "import_module", lambda name: OneShotBrotli)
    assert undo("br", b"~{}").body == b"{}"
    assert undo("br", b"~{}" + b" " * 200 + b"!").body.strip() == b"{}"
    assert undo("br", b"~!").reason == "content encoding br: corrupt"
