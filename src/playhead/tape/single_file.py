"""A tape as one readable file, `NAME.tape.jsonl`: for tests, reviews and git. Knows both forms.

Line 1 has the manifest's facts about the run and a checksum of the file. Every further line is an event without
machine-specific members (clock readings, process and thread ids, checksums), with its blobs in their places. `unpack`
turns it into a folder again that can be read, verified and replayed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.errors import TapeDamaged, TapeTooNew
from playhead.host.private_files import create_part, file_of, read_regular
from playhead.tape.format import FORMAT_VERSION, SEGMENT_PREFIX, SEGMENT_SUFFIX, close_line
from playhead.tape.manifest import DETAILS, FILE_CHECKSUM, from_members, write_manifest
from playhead.tape.reader import Tape
from playhead.tape.store import MANIFEST

_LARGEST = 1024 * 1024 * 1024
# The member of line 1 with the SHA-256 of the file. It is computed with zeros in its own place, so that it covers
# line 1 as well and can be written last. A checksum in line 1 needs no new version: older versions of Playhead ignore
# it, and they would refuse a last line that is not an event. One value for the file, not one per line: then a change
# of one event changes two lines of a diff.
_CHECKSUM = "sha256"
_ZEROS = "0" * 64
_IN_HEAD = re.compile(rb'"sha256":"([0-9a-f]{64})"')
_KEPT = (
    "run",
    "name",
    "status",
    "level",
    "redacted",
    "command",
    "tags",
    "started_at",
    "started_ns",
    "exit_code",
    "duration_s",
    "error",
)
# Variables that decide what an agent asks, wherever it runs. The others stay with the folder form.
SHARED_VARIABLE = re.compile(
    r"(?:ANTHROPIC|OPENAI|AZURE_OPENAI|GEMINI|GOOGLE_GEMINI|LITELLM|MISTRAL|GROQ|COHERE|XAI|OLLAMA)_\w+"
    r"|\w+_(?:BASE_URL|API_BASE|API_KEY|MODEL)|TZ|LANG|LC_\w+"
)
# The members of a segment's first event that a replay needs; the others belong to the machine.
_PROCESS = ("format", "run", "generation", "level", "redacted", "argv")


def pack(run: Path, target: Path) -> int:
    """Write the run in that folder as one file, replaced atomically. Return the number of events in it."""
    tape = Tape(run)
    target.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    fd, part = create_part(target)
    try:
        with open(fd, "wb") as file:
            digest = hashlib.sha256()
            place = 0
            for line in _packed(tape):
                raw = _utf8(line)
                if not count:
                    place = raw.index(_ZEROS.encode())
                digest.update(raw)
                file.write(raw)
                count += 1
            file.seek(place)
            file.write(digest.hexdigest().encode())
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise
    return count - 1


def announce(run: Path, target: Path) -> None:
    """Write where the run is while it is being recorded, until `pack` replaces the file by the run itself. A
    program that is killed leaves this file, and every command finds the run by it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    fd, part = create_part(target)
    with open(fd, "w", encoding="utf-8", newline="\n") as file:
        file.write(
            _line({"playhead": FORMAT_VERSION, "run": run.name, _FOLDER: str(run.absolute())})
        )
    os.replace(part, target)


def is_single_file(source: Path) -> bool:
    """Return whether this is a tape in one file, whatever its name is."""
    try:
        with file_of(source.resolve()) as file:
            return file.readline(64).startswith(b'{"playhead":')
    except OSError:
        return False


def folder_of(source: Path, target: Path) -> Path:
    """Return the folder form of a single-file tape: created in `target`, or the folder of a run that is still being
    recorded.
    """
    try:
        with file_of(source.resolve()) as file:
            first = file.readline(_LONGEST_POINTER)
    except OSError as error:
        raise TapeDamaged(f"{source} cannot be read as a tape: {error}") from None
    # A line that is longer than any pointer is the header of a tape.
    head = _members(source, 1, first.decode("utf-8", "replace")) if first.endswith(b"\n") else {}
    announced = head.get(_FOLDER)
    if not isinstance(announced, str):
        return unpack(source, target)
    if "\0" in announced or not (Path(announced) / MANIFEST).exists():
        raise TapeDamaged(
            f"{source} says that the run is in {announced}, but that folder has no run. "
            "The recording was interrupted, and its folder has been moved or deleted."
        )
    return Path(announced)


_FOLDER = "recorded_in"
_LONGEST_POINTER = 64 * 1024


def _packed(tape: Tape) -> Iterator[str]:
    manifest = tape.manifest
    threads: dict[tuple[str, int], int] = {}
    # The checksum comes second, so that its place is found before any text of the user.
    head: dict[str, Any] = {"playhead": FORMAT_VERSION, _CHECKSUM: _ZEROS}
    head |= {name: getattr(manifest, name) for name in _KEPT}
    if manifest.generation:
        head["generation"] = manifest.generation
    if DETAILS in manifest.extra:
        head[DETAILS] = manifest.extra[DETAILS]
    yield _line(head)
    names: dict[str, str] = {}
    began: int | None = None
    for event in tape.events():
        segment = names.setdefault(event.segment, str(len(names) + 1))
        began = event.mono if began is None else began
        whole = tape.whole(event)
        data = whole.data
        if event.kind == "segment.start" and isinstance(data, dict):
            data = {name: item for name, item in data.items() if name in _PROCESS}
        elif event.kind == "run.start" and isinstance(data, dict):
            data = _portable(data)
        members: dict[str, Any] = {"in": segment, "seq": event.seq, "kind": event.kind}
        members["ms"] = (event.mono - began) // 1_000_000
        if event.thread:
            # Numbered in order of appearance: the ids are specific to the machine.
            members["thread"] = threads.setdefault((event.segment, event.thread), len(threads) + 1)
        for name in ("lane", "at", "who", "why"):
            if (value := getattr(event, name)) is not None:
                members[name] = value
        for name in ("parent", "cause"):
            if (ref := getattr(event, name)) is not None:
                members[name] = _renamed(ref, names)
        if event.user:
            members["user"] = True
        members["data"] = _refs(data, names)
        yield _line(members)


def _portable(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data without the folders and variables of the user's machine."""
    env = data.get("env")
    chosen = (
        {k: v for k, v in env.items() if SHARED_VARIABLE.fullmatch(k)}
        if isinstance(env, dict)
        else {}
    )
    rest = {name: item for name, item in data.items() if name not in ("cwd", "project", "env")}
    return {**rest, "env": chosen}


def _line(members: dict[str, Any]) -> str:
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")) + "\n"


def _utf8(line: str) -> bytes:
    try:
        return line.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can only have as an escape
        return json.dumps(json.loads(line), separators=(",", ":")).encode() + b"\n"


def _renamed(ref: Any, names: dict[str, str]) -> Any:
    if not isinstance(ref, str):
        return ref
    segment, colon, seq = ref.partition(":")
    return f"{names[segment]}:{seq}" if colon and segment in names else ref


def _refs(data: Any, names: dict[str, str]) -> Any:
    """Rename the references to events inside data (a child's call, the call of a match)."""
    if isinstance(data, dict):
        return {
            name: _renamed(item, names) if name in ("of", "call", "ref") else _refs(item, names)
            for name, item in data.items()
        }
    if isinstance(data, list):
        return [_refs(item, names) for item in data]
    return data


def unpack(source: Path, target: Path) -> Path:
    """Create the folder form of a single-file tape in `target` and return it. TapeDamaged names the line."""
    try:
        raw = read_regular(source.resolve(), _LARGEST)
        # Not `splitlines`, which also splits at U+2028 and U+0085. JSON has them unescaped inside texts.
        lines = raw.decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TapeDamaged(f"{source} cannot be read as a tape: {error}") from None
    head = _members(source, 1, lines[0])
    version = head.get("playhead")
    if not isinstance(version, int):
        raise TapeDamaged(
            f'{source} line 1 is not the header of a tape: expected {{"playhead": {FORMAT_VERSION}, …}}.'
        )
    if version > FORMAT_VERSION:
        raise TapeTooNew(found=version, known=FORMAT_VERSION)
    extra = {DETAILS: head[DETAILS]} if DETAILS in head else {}
    extra[FILE_CHECKSUM] = checksum_of(raw)
    kept = {name: head[name] for name in (*_KEPT, "generation") if name in head}
    known = {"status": "ok", "run": "", **kept, **extra, "host": clock.host()}
    manifest = from_members(known, target)
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for segment, rows in _by_segment(source, lines[1:], manifest.started_ns).items():
        _write_segment(target / f"{SEGMENT_PREFIX}{segment}{SEGMENT_SUFFIX}", rows)
    write_manifest(target, manifest)
    return target


def checksum_of(raw: bytes) -> str:
    """Compare the file with the checksum in its first line: `right`, `wrong`, or `none` if there is none."""
    first, newline, rest = raw.partition(b"\n")
    found = _IN_HEAD.search(first)
    if found is None:
        return "none"
    blank = first[: found.start(1)] + _ZEROS.encode() + first[found.end(1) :]
    # git may have changed the ends of lines.
    whole = (blank + newline + rest).replace(b"\r\n", b"\n")
    return "right" if hashlib.sha256(whole).hexdigest().encode() == found[1] else "wrong"


def _by_segment(
    source: Path, lines: Iterable[str], started: int
) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        members = _members(source, number, line)
        try:
            segment = str(_number(members.pop("in")))
            moment = _number(members.pop("ms", 0)) * 1_000_000
            seq, kind, data = (
                _number(members.pop("seq")),
                str(members.pop("kind")),
                members.pop("data", None),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise TapeDamaged(
                f"{source} line {number} is not an event: {type(error).__name__} {error}."
            ) from None
        # The line's own number keeps the order of events that share a millisecond.
        made = {
            "seq": seq,
            "kind": kind,
            "wall": started + moment,
            "mono": 1 + moment + number,
            "pid": int(segment),
        }
        found.setdefault(segment, []).append({**made, "thread": 0, **members, "data": data})
    return found


def _number(value: Any) -> int:
    number = int(value)
    if not 0 <= number < 2**53:
        raise ValueError(f"{str(number)[:40]} is out of range")
    return number


def _members(source: Path, number: int, line: str) -> dict[str, Any]:
    try:
        members = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TapeDamaged(f"{source} line {number} is not JSON: {error}.") from None
    if not isinstance(members, dict):
        raise TapeDamaged(f"{source} line {number} is not a JSON object.")
    return members


def _write_segment(path: Path, rows: list[dict[str, Any]]) -> None:
    crc = 0
    out = []
    for row in rows:
        body = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )
        line, crc = close_line(body[:-1], crc)
        out.append(line)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(b"".join(out))
