"""The page on the format says what the program does, and its reader reads."""

import re
import runpy
from pathlib import Path

import pytest
import zstandard

from playhead.encoding import values
from playhead.events import BOUNDARIES, KINDS, Event
from playhead.tape.blobs import THRESHOLD
from playhead.tape.format import FORMAT_VERSION, LONGEST_LINE, close_line
from playhead.tape.manifest import Manifest
from playhead.tape.reader import Tape
from playhead.tape.sealed.seal_index import IndexedFrame, SealIndex
from playhead.tape.sealed.sealed_segment import SealedSegment
from playhead.tape.sealed.zstd import MOST

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "tape-format.md").read_text(encoding="utf-8")
GOLDEN = ROOT / "tests" / "tapes" / "v1"


def section(title):
    return PAGE.partition(f"# {title}\n")[2].partition("\n## ")[0]


def test_the_page_is_about_the_format_that_is_written():
    assert PAGE.startswith(f"# The tape, format {FORMAT_VERSION}\n")


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Kinds of events", [*KINDS, *BOUNDARIES]),
        ("Members", [*Event.__dataclass_fields__, "crc"]),
        ("The manifest", set(Manifest.__dataclass_fields__) - {"extra"}),
        (
            "Sealed tapes",
            [
                name
                for kind in (SealIndex, IndexedFrame, SealedSegment)
                for name in kind.__dataclass_fields__
            ],
        ),
    ],
)
def test_every_word_of_the_format_is_explained(title, words):
    told = section(title)
    assert [word for word in words if f"`{word}`" not in told and f'"{word}"' not in told] == []


def test_every_codec_is_explained():
    source = Path(values.__file__).read_text(encoding="utf-8")
    codecs = set(re.findall(r'"(\$[a-z]+)"', source)) | {"$blob", "$hash"}
    assert len(codecs) > 20
    assert [codec for codec in sorted(codecs) if codec not in section("Values")] == []


def test_the_worked_example_is_right():
    first, second = section("The chain of checksums").partition("```\n")[2].splitlines()[:2]
    line, crc = close_line(b'{"seq":0,"kind":"a"', 0)
    assert line == first.encode() + b"\n"
    assert close_line(b'{"seq":1,"kind":"b"', crc)[0] == second.encode() + b"\n"


def test_the_limits_are_right():
    assert "longer than 16 MiB" in PAGE
    assert LONGEST_LINE == 16 * 1024 * 1024
    assert THRESHOLD == 64 * 1024
    assert MOST == 17 * 1024 * 1024 + 1


@pytest.fixture
def reader(tmp_path):
    program = section("A reader in thirty lines").partition("```python\n")[2].partition("```")[0]
    path = tmp_path / "reader.py"
    path.write_text(program, encoding="utf-8")
    return runpy.run_path(str(path))["read_run"]


@pytest.mark.parametrize("name", ["whole", "torn", "corrupt", "unknown"])
def test_the_reader_on_the_page_reads_what_ours_reads(reader, name, capsys):
    found = reader(GOLDEN / name)
    ours = list(Tape(GOLDEN / name).events())
    assert [(event["pid"], event["seq"], event["kind"]) for event, _ in found] == [
        (event.pid, event.seq, event.kind)
        for event in sorted(ours, key=lambda event: (event.mono, event.pid, event.seq))
    ]
    assert all(whole for _, whole in found) == (name != "corrupt")
    assert bool(capsys.readouterr().err) == (name in ("torn", "corrupt"))


def test_the_sealed_golden_tape_needs_nothing_but_zstd():
    lines = (GOLDEN / "whole" / "tape-4712.jsonl").read_bytes()
    with (GOLDEN / "sealed" / "tape.jsonl.zst").open("rb") as file:
        raw = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    own = [line for line in raw.splitlines(keepends=True) if b'"pid":4712,' in line]
    assert b"".join(own) == lines
