"""Bytes are cut into lines, however they arrive, and no line is held that is too long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import StoreError
from playhead.tape.reading.segment_rows import batches, blocks

LONGEST = 50


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr("playhead.tape.reading.segment_rows.LONGEST_LINE", LONGEST)


def cut(content, sizes):
    """`content` in pieces of these sizes, the last one over and over."""
    pieces = []
    while content:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        pieces.append(content[:size])
        content = content[size:]
    return pieces


lines = st.lists(st.binary(max_size=2 * LONGEST).map(lambda raw: raw.replace(b"\n", b" ")))


@given(lines, st.binary(max_size=30), st.lists(st.integers(1, 70), min_size=1, max_size=5))
def test_pieces_of_any_size_give_the_same_lines(whole, rest, sizes):
    rest = rest.replace(b"\n", b" ")
    content = b"".join(line + b"\n" for line in whole) + rest
    found = []
    for batch in batches(cut(content, sizes)):
        found += [len(line) for line in batch.lines] if not batch.skipped else [-batch.skipped]
        assert not batch.torn or batch.lines == [rest]
    expected = [len(line) if len(line) <= LONGEST else -len(line) for line in whole]
    assert found == expected + ([len(rest)] if rest else [])


def test_a_torn_line_that_is_too_long_is_skipped_as_well():
    (batch,) = batches([b"x" * 40, b"x" * 40])
    assert (batch.lines, batch.skipped, batch.torn) == ([], 80, True)


def test_a_part_of_a_file_can_be_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert b"".join(blocks(path, start=2, stop=7)) == b"23456"
    assert b"".join(blocks(path, start=8)) == b"89"
    assert b"".join(blocks(path, start=4, stop=4)) == b""
    assert b"".join(blocks(path, start=20)) == b""


def test_a_file_that_cannot_be_read_is_our_own_error(tmp_path):
    with pytest.raises(StoreError, match="No such file"):
        list(blocks(tmp_path / "nowhere"))
    with pytest.raises(StoreError, match="not a regular file"):
        list(blocks(tmp_path))
