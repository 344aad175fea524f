"""Tapes that are small on disk and enormous when they are read. Each function lays one into a run's folder."""

import json
from collections.abc import Callable
from pathlib import Path

import zstandard

from playhead.tape.format import FORMAT_VERSION, close_line
from playhead.tape.manifest import Manifest, write_manifest

RUN = "20261115-071105-b0mb"


def line(crc: int, seq: int, kind: str, data: str, pid: int = 77) -> tuple[bytes, int]:
    members = {"seq": seq, "kind": kind, "wall": 1_794_726_665_000_000_000 + seq, "mono": 5 + seq}
    members |= {"pid": pid, "thread": 1, "lane": "main", "at": "a.py:1 f", "who": "a", "parent": 0}
    body = json.dumps(members, separators=(",", ":"))[:-1] + f',"data":{data}'
    return close_line(body.encode(), crc)


def opening(pid: int = 77) -> tuple[bytes, int]:
    data = json.dumps({"format": FORMAT_VERSION, "run": RUN, "generation": 0})
    return line(0, 0, "segment.start", data, pid)


def lay(folder: Path, **more: object) -> Path:
    run = folder / "runs" / RUN
    run.mkdir(parents=True)
    write_manifest(
        run, Manifest(run=RUN, name="bomb", **{"status": "ok", "command": ["true"], **more})
    )
    return run


def sealed(run: Path, *pieces: bytes) -> None:
    """Frames of at most a megabyte each, as the sealer writes them."""
    compressor = zstandard.ZstdCompressor(level=19, write_checksum=True)
    made = {piece: compressor.compress(piece) for piece in set(pieces)}
    with (run / "tape.jsonl.zst").open("wb") as file:
        for piece in pieces:
            file.write(made[piece])


def many_lines(folder: Path) -> None:
    """20 million lines that are not events, in 82 KB."""
    first, _ = opening()
    sealed(lay(folder), first, *([b"{}\n" * 350_000] * 58))


def empty_lines(folder: Path) -> None:
    first, _ = opening()
    sealed(lay(folder), first, *([b"\n" * 1_000_000] * 100))


def zeros(folder: Path) -> None:
    """6.8 GB of zeros in 225 KB."""
    first, _ = opening()
    sealed(lay(folder), first, *([b"\0" * 1_048_576] * 6_800))


def one_long_line(folder: Path) -> None:
    first, _ = opening()
    sealed(lay(folder), first, *([b"x" * 1_048_576] * 2_000), b"\n")


def many_segments(folder: Path, count: int = 5_000) -> None:
    run = lay(folder)
    for pid in range(100, 100 + count):
        (run / f"tape-{pid}.jsonl").write_bytes(opening(pid)[0])


def many_plain_lines(folder: Path) -> None:
    run = lay(folder)
    (run / "tape-77.jsonl").write_bytes(opening()[0] + b"{}\n" * 5_000_000)


def deep_json(folder: Path) -> None:
    run = lay(folder)
    raw, crc = opening()
    for seq, deep in enumerate((900, 5_000, 100_000), 1):
        data = '{"boundary":"tool","name":"t","request":' + "[" * deep + "]" * deep + "}"
        more, crc = line(crc, seq, "call", data)
        raw += more
    for seq, deep in enumerate((900, 5_000), 4):
        data = '{"boundary":"tool","name":"t","request":' + '{"$tuple":[' * deep + "]}" * deep + "}"
        more, crc = line(crc, seq, "call", data)
        raw += more
    (run / "tape-77.jsonl").write_bytes(raw)


def deep_manifest(folder: Path) -> None:
    run = lay(folder)
    (run / "tape-77.jsonl").write_bytes(opening()[0])
    (run / "manifest.json").write_text('{"extra":' + "[" * 100_000 + "]" * 100_000 + "}")


def huge_manifest(folder: Path) -> None:
    run = lay(folder)
    (run / "tape-77.jsonl").write_bytes(opening()[0])
    with (run / "manifest.json").open("wb") as file:
        file.truncate(20_000_000_000)


def sparse_segment(folder: Path) -> None:
    """A file of holes: 40 GB that take no disk."""
    run = lay(folder)
    with (run / "tape-77.jsonl").open("wb") as file:
        file.write(opening()[0])
        file.truncate(40_000_000_000)


BOMBS: tuple[Callable[[Path], None], ...] = (
    *(many_lines, empty_lines, zeros, one_long_line, many_segments, many_plain_lines),
    *(deep_json, deep_manifest, huge_manifest, sparse_segment),
)
VERBS: tuple[tuple[str, ...], ...] = (
    ("list", "--all"),
    ("show", RUN),
    ("verify", RUN),
    ("export", RUN, "--story", "OUT"),
    ("search", "word", "--all"),
    ("replay", RUN, "--trust", "--dry-run"),
    ("events", RUN, "--limit", "5"),
)
