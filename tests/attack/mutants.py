"""Tapes with hostile values in the places of ordinary ones, and right checksums: so they reach every view.

A mutant depends on a seed and a number alone: `python -m tests.attack.mutant_worker SEED NUMBER 1` makes it again.
"""

import copy
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import zstandard

from playhead.tape.format import close_line
from playhead.tape.single_file import pack
from playhead.testing import Reply, ToolCall, Usage

_CONFTEST = Path(__file__).parents[1] / "unit" / "conftest.py"
_spec = importlib.util.spec_from_file_location("attack_forge", _CONFTEST)
assert _spec is not None
assert _spec.loader is not None
_forge = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_forge)

# What a file outside of the store contains. It must not appear in an output or an export.
CANARY = "canary-6f1d9c-of-another-folder"
HOSTILE: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**63, -(2**70), 1e308, 1.5, "", "\0", "\ud800", "../../etc/passwd", "x" * 5_000),
    *([], {}, [[]], [None], {"": None}, {"$blob": 7}, {"$blob": "../x", "size": -1}, {"$opaque": 1}),
    *({"$exception": 3}, {"$exception": "a:b", "message": [], "traceback": "x"}, {"$bytes": "%%%"}),
    *({"$tuple": 3}, {"$set": [{}]}, {"$dict": [[1]]}, {"$unknown": 1}, {"$hash": 1, "size": "x"}),
    *("\x1b[2J", "running", "http", "llm", "process", "call", "outcome", "run.start", "segment.start"),
    [[[[[[[[]]]]]]]],
)  # fmt: skip
# RUN: a run of the store; FILE: a single-file tape; OUT: a path that does not exist.
VERBS: tuple[tuple[str, ...], ...] = (
    ("show", "RUN"),
    ("show", "RUN", "--full", "--output"),
    ("show", "RUN", "--call", "1"),
    ("show", "RUN", "--json"),
    ("export", "RUN", "--story", "OUT"),
    ("export", "RUN", "--html", "OUT"),
    ("export", "RUN", "--tape", "OUT"),
    ("export", "RUN", "--bundle", "OUT.playhead.zip"),
    ("export", "RUN", "--fixtures", "OUT"),
    ("list", "--all"),
    ("list", "--all", "--tree"),
    ("list", "--all", "--json"),
    ("search", "refund", "--all"),
    ("stats", "--all"),
    ("verify", "RUN"),
    ("events", "RUN"),
    ("replay", "RUN", "--trust", "--dry-run"),
    ("play", "RUN"),
    ("diff", "RUN", "RUN"),
    ("files", "RUN"),
    ("blame", "RUN", "a.txt"),
    ("checkout", "RUN", "OUT"),
    ("promote", "RUN", "OUT"),
    ("repair", "RUN"),
    ("seal", "RUN"),
    ("scrub", "RUN", "--text", "refund"),
    ("tag", "RUN", "reviewed", "env=prod"),
    ("note", "RUN", "see ticket 77"),
    ("import", "claude", "CLAUDE"),
    ("import", "codex", "CODEX"),
    ("show", "FILE"),
    ("verify", "FILE"),
    ("replay", "FILE", "--trust", "--dry-run"),
    ("export", "FILE", "--html", "OUT"),
)
# Session files of agents, of which `import` makes runs.
_SAID = Path(__file__).parents[1] / "unit" / "transcripts" / "said"
SESSIONS = {
    "CLAUDE": next(
        one for one in sorted((_SAID / "projects").rglob("*.jsonl")) if "subagents" not in one.parts
    ),
    "CODEX": next(iter(sorted((_SAID / "sessions").rglob("*.jsonl")))),
}
# Files of a run in whose place a mutant may have a link or a pipe.
_REPLACED = (
    *("manifest.json", "tape.index.json", "tape.jsonl.zst", "marks.json", "replay.json"),
    *("tape-66.jsonl", "signature.sig", "blobs"),
)
_AGENT = """
import pathlib, random, subprocess, time
pathlib.Path("a.txt").write_text("one\\n")
print(subprocess.run(["cat", "a.txt"], capture_output=True).stdout, random.random(), time.time())
pathlib.Path("sub").mkdir()
pathlib.Path("sub/b.txt").write_text("two\\n" * 3)
subprocess.run(["sh", "-c", "echo three >> a.txt; echo refund >&2"])
"""


def made_by_hand(store: Path, outside: Path) -> Path:
    """Write a tape with an event of every kind that views show. Its command would leave a file outside."""
    command = ["touch", str(outside / "executed")]
    tape = _forge.Forge(
        store, tags={"env": "ci"}, command=command, cwd=str(outside), project=str(outside)
    )
    turn = tape.turn("reply", "answer the customer", {"text": "refund?"})
    use = ToolCall(name="lookup", arguments={"order": "A-1"})
    asked = tape.llm(
        "refund?", Reply(text="hi", tool_calls=(use,), usage=Usage(input=10, output=3)), parent=turn
    )
    tape.tool("lookup", {"order": "A-1"}, value={"paid": 3.5}, parent=turn, cause=asked)
    tape.tool("issue", {"order": "A-1"}, error=KeyError("no"), parent=turn)
    tape.seam(turn, "asked", {"n": 1})
    child = tape.call("process", "touch", {"argv": command, "cwd": str(outside)}, parent=turn)
    tape.chunk(child, b"on main\n", "stdout")
    tape.outcome(child, value={"returncode": 0})
    tape.event("output", {"stream": "stdout", "text": "hello\n"})
    tape.event("user.kind", {"a": 1}, user=True, why="because")
    tape.event("hole", {"boundary": "http", "what": "curl", "why": "not seen"})
    tape.turn_end(turn, error=ValueError("bad"))
    return tape.end("failed", ValueError("bad"))


def recorded(store: Path, work: Path) -> None:
    """Record a program that changes files, for the verbs that show and restore them."""
    work.mkdir()
    (work / "agent.py").write_text(_AGENT)
    words = ["record", "--store", str(store), "--", sys.executable, "agent.py"]
    subprocess.run(
        [sys.executable, "-m", "playhead", *words],
        cwd=work,
        capture_output=True,
        check=True,
        timeout=120,
    )


def paths_of(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield every place in a JSON value."""
    yield at
    if isinstance(value, dict):
        for name, item in value.items():
            yield from paths_of(item, (*at, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths_of(item, (*at, index))


def mutated(value: Any, chance: random.Random, hostile: Sequence[Any] = HOSTILE) -> Any:
    """Return the value with one to three places replaced or deleted."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        at = chance.choice([one for one in paths_of(value) if one] or [()])
        if not at:
            return chance.choice(hostile)
        inner = value
        for step in at[:-1]:
            inner = inner[step]
        if chance.random() < 0.15:
            del inner[at[-1]]
        else:
            inner[at[-1]] = copy.deepcopy(chance.choice(hostile))
    return value


class _Original:
    """A run that mutants are made from: its manifest and the rows of each segment."""

    def __init__(self, run: Path) -> None:
        self.path = run
        self.manifest = json.loads((run / "manifest.json").read_text())
        self.segments = {}
        for file in sorted(run.glob("tape-*.jsonl")):
            rows = [json.loads(raw) for raw in file.read_bytes().splitlines()]
            for row in rows:
                row.pop("crc", None)
            self.segments[file.name] = rows


class Mutants:
    """Puts one mutant after the other into the same store.

    `folder` gets a `store`, which a mutant may use, and a folder `outside`, which no mutant may read or change.
    """

    def __init__(self, folder: Path) -> None:
        self.store, self.outside = folder / "store", folder / "outside"
        self._scratch, self._out = folder / "scratch", folder / "out" / "new"
        for one in (self.store, self.outside, self._scratch, self._out.parent):
            one.mkdir()
        self.secret = self.outside / "secret.txt"
        self.secret.write_text(CANARY)
        recorded(self.store, folder / "work")
        made_by_hand(self.store, self.outside)
        self._originals = [_Original(run) for run in sorted((self.store / "runs").iterdir())]
        by_hand, self._with_files = sorted(self._originals, key=lambda one: one.path.name != _forge.RUN)  # fmt: skip
        pack(by_hand.path, self._scratch / "base.tape.jsonl")
        self._lines = _rows(self._scratch / "base.tape.jsonl")
        self._sessions = {name: _rows(file) for name, file in SESSIONS.items()}
        self._hostile = (
            *HOSTILE,
            *(str(self.secret), "../../../outside/secret.txt", str(self.outside), f"file://{self.secret}"),
            *({"$blob": "../../outside/secret.txt", "size": 9}, {"$blob": str(self.secret), "size": 9}),
        )  # fmt: skip

    def lay_for(self, verb: tuple[str, ...], chance: random.Random) -> dict[str, str]:
        """Write the mutant that this verb reads. The result: what the words of the verb stand for."""
        for out in self._out.parent.iterdir():
            self._remove(out)
        # A store with the runs of earlier mutants would grow.
        for run in (self.store / "runs").iterdir():
            self._remove(run)
        original = self._original(verb, chance)
        named = {"RUN": original.path.name, **self._outs}
        if "FILE" in verb:
            return {**named, "FILE": self._written("mutant.tape.jsonl", self._lines, chance)}
        for session, rows in self._sessions.items():
            if session in verb:
                name = f"{session.lower()}.jsonl"
                return {**named, session: self._written(name, rows, chance)}
        self.lay(original, chance)
        return named

    def _original(self, verb: tuple[str, ...], chance: random.Random) -> _Original:
        # The tape that was made by hand has no files.
        needs_files = verb[0] in ("blame", "checkout", "files")
        return self._with_files if needs_files else chance.choice(self._originals)

    @property
    def _outs(self) -> dict[str, str]:
        return {f"OUT{suffix}": f"{self._out}{suffix}" for suffix in ("", ".playhead.zip")}

    def lay_unchanged(self, verb: tuple[str, ...], number: int) -> dict[str, str]:
        """Write what the verb reads without a mutation: each verb must work then, or the attack does not reach it."""
        self.lay_for(verb, random.Random(0))
        original = self._original(verb, random.Random(number))
        self._remove(original.path)
        self._write(original, original.segments, original.manifest, chance=None)
        files = {"FILE": self._scratch / "base.tape.jsonl", **SESSIONS}
        return {
            "RUN": original.path.name,
            **self._outs,
            **{name: str(file) for name, file in files.items()},
        }

    def escaped(self) -> str | None:
        """Return what a verb did outside of the store, if it did."""
        if sorted(os.listdir(self.outside)) != ["secret.txt"]:
            names = sorted(os.listdir(self.outside))
            for name in names:
                if name != "secret.txt":
                    self._remove(self.outside / name)
            return f"wrote outside: {names}"
        if self.secret.read_text() != CANARY:
            self.secret.write_text(CANARY)
            return "changed a file outside"
        for file in self._out.parent.rglob("*"):
            if file.is_symlink() or not file.is_file():
                continue
            contents = [file.read_bytes()]
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    contents += [archive.read(one) for one in archive.infolist()]
            if any(CANARY.encode() in one for one in contents):
                return "exported a file from outside"
        return None

    def lay(self, original: _Original, chance: random.Random) -> None:
        """Write a mutant of this run."""
        segments = {name: list(rows) for name, rows in original.segments.items()}
        manifest = original.manifest
        if chance.random() < 0.2:
            manifest = mutated(manifest, chance, self._hostile)
        for _ in range(chance.randint(1, 3)):
            rows = segments[chance.choice(list(segments))]
            at = chance.randrange(len(rows))
            rows[at] = mutated(rows[at], chance, self._hostile)
        if chance.random() < 0.1:
            chance.shuffle(segments[chance.choice(list(segments))])
        self._write(original, segments, manifest, chance)
        if chance.random() < 0.1:
            self._plant(original.path, chance)

    def _write(
        self,
        original: _Original,
        segments: dict[str, list[Any]],
        manifest: Any,
        chance: random.Random | None,
    ) -> None:
        run = original.path
        run.mkdir(mode=0o700)
        (run / "manifest.json").write_text(json.dumps(manifest))
        raw = {name: _closed(rows) for name, rows in segments.items()}
        if chance is not None and chance.random() < 0.1:
            frames = [zstandard.ZstdCompressor(write_checksum=True).compress(one) for one in raw.values()]  # fmt: skip
            (run / "tape.jsonl.zst").write_bytes(b"".join(frames))
            return
        for name, content in raw.items():
            (run / name).write_bytes(content)

    def _plant(self, run: Path, chance: random.Random) -> None:
        """Replace a file of the run by a link or a pipe."""
        name = chance.choice((*_REPLACED, *(one.name for one in run.iterdir())))
        self._remove(run / name)
        target = chance.choice((str(self.secret), str(self.outside), "/dev/zero", name, None))
        os.mkfifo(run / name) if target is None else (run / name).symlink_to(target)

    def _written(self, name: str, lines: list[Any], chance: random.Random) -> str:
        rows = list(lines)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(rows))
            rows[at] = mutated(rows[at], chance, self._hostile)
        if chance.random() < 0.1:
            chance.shuffle(rows)
        file = self._scratch / name
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(file)

    @staticmethod
    def _remove(path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _rows(file: Path) -> list[Any]:
    return [json.loads(one) for one in file.read_text().splitlines() if one.strip()]


def _closed(rows: list[Any]) -> bytes:
    """Return the lines of a segment with right checksums."""
    crc, raw = 0, b""
    for row in rows:
        body = json.dumps(row, separators=(",", ":")).encode()
        if not isinstance(row, dict) or not row:
            raw += body + b"\n"
            continue
        line, crc = close_line(body[:-1], crc)
        raw += line
    return raw
