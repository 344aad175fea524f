"""Tapes with hostile values in the places of ordinary ones, and right checksums: so they reach every view.

`attack(count, seed)` runs a random verb on each in this process. Whatever a tape contains, a verb ends with its answer
or with an error of Playhead's own, never with a traceback.
"""

import contextlib
import copy
import importlib.util
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from playhead.cli import main
from playhead.tape.format import close_line
from playhead.testing import Reply, ToolCall, Usage

_CONFTEST = Path(__file__).parents[1] / "unit" / "conftest.py"
_spec = importlib.util.spec_from_file_location("attack_forge", _CONFTEST)
assert _spec is not None
assert _spec.loader is not None
_forge = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_forge)

HOSTILE: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**63, -(2**70), 1e308, 1.5, "", "\0", "\ud800", "../../etc/passwd", "x" * 5_000),
    *([], {}, [[]], [None], {"": None}, {"$blob": 7}, {"$blob": "../x", "size": -1}, {"$opaque": 1}),
    *({"$exception": 3}, {"$exception": "a:b", "message": [], "traceback": "x"}, {"$bytes": "%%%"}),
    *({"$tuple": 3}, {"$set": [{}]}, {"$dict": [[1]]}, {"$unknown": 1}, {"$hash": 1, "size": "x"}),
    *("\x1b[2J", "running", "http", "llm", "process", "call", "outcome", "run.start", "segment.start"),
    [[[[[[[[]]]]]]]],
)  # fmt: skip
VERBS: tuple[tuple[str, ...], ...] = (
    ("show", "RUN"),
    ("show", "RUN", "--full", "--output"),
    ("show", "RUN", "--call", "1"),
    ("show", "RUN", "--json"),
    ("export", "RUN", "--story", "OUT"),
    ("export", "RUN", "--html", "OUT"),
    ("export", "RUN", "--tape", "OUT"),
    ("list", "--all"),
    ("list", "--all", "--tree"),
    ("search", "refund", "--all"),
    ("stats", "--all"),
    ("verify", "RUN"),
    ("events", "RUN"),
    ("replay", "RUN", "--trust", "--dry-run"),
    ("play", "RUN", "--no-pause"),
    ("diff", "RUN", "RUN"),
    ("files", "RUN"),
    ("export", "RUN", "--bundle", "OUT"),
    ("export", "RUN", "--fixtures", "OUT"),
    ("import", "claude", "CLAUDE"),
    ("import", "codex", "CODEX"),
)
# Session files of agents, of which `import` makes runs.
_SAID = Path(__file__).parents[1] / "unit" / "transcripts" / "said"
SESSIONS = {
    "CLAUDE": next(
        one for one in sorted((_SAID / "projects").rglob("*.jsonl")) if "subagents" not in one.parts
    ),
    "CODEX": next(iter(sorted((_SAID / "sessions").rglob("*.jsonl")))),
}


class Found(NamedTuple):
    """A mutant that broke a verb."""

    number: int
    verb: str
    what: str


def base(folder: Path) -> Path:
    """A tape with something of everything."""
    tape = _forge.Forge(folder, tags={"env": "ci"})
    turn = tape.turn("reply", "answer the customer", {"text": "refund?"})
    use = ToolCall(name="lookup", arguments={"order": "A-1"})
    asked = tape.llm(
        "refund?", Reply(text="hi", tool_calls=(use,), usage=Usage(input=10, output=3)), parent=turn
    )
    tape.tool("lookup", {"order": "A-1"}, value={"paid": 3.5}, parent=turn, cause=asked)
    tape.tool("issue", {"order": "A-1"}, error=KeyError("no"), parent=turn)
    tape.seam(turn, "asked", {"n": 1})
    child = tape.call(
        "process", "git status", {"argv": ["git", "status"], "cwd": "/srv"}, parent=turn
    )
    tape.chunk(child, b"on main\n", "stdout")
    tape.outcome(child, value={"returncode": 0})
    tape.event("output", {"stream": "stdout", "text": "hello\n"})
    tape.event("user.kind", {"a": 1}, user=True, why="because")
    tape.event("files", {"call": asked, "changes": []})
    tape.event("hole", {"boundary": "http", "what": "curl", "why": "not seen"})
    tape.turn_end(turn, error=ValueError("bad"))
    return tape.end("failed", ValueError("bad"))


def paths_of(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    yield at
    if isinstance(value, dict):
        for name, item in value.items():
            yield from paths_of(item, (*at, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths_of(item, (*at, index))


def mutated(value: Any, chance: random.Random) -> Any:
    """The value with one to three places replaced, deleted or renamed."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        at = chance.choice([one for one in paths_of(value) if one] or [()])
        if not at:
            return chance.choice(HOSTILE)
        inner = value
        for step in at[:-1]:
            inner = inner[step]
        if chance.random() < 0.15:
            del inner[at[-1]]
        else:
            inner[at[-1]] = copy.deepcopy(chance.choice(HOSTILE))
    return value


class Mutants:
    """Lays one mutant after the other into the same folder."""

    def __init__(self, folder: Path) -> None:
        self.run = base(folder)
        self._file = next(self.run.glob("tape-*.jsonl"))
        self._rows = [json.loads(raw) for raw in self._file.read_bytes().splitlines()]
        for row in self._rows:
            row.pop("crc", None)
        self._manifest = json.loads((self.run / "manifest.json").read_text())
        self._folder = folder
        self._sessions = {
            name: [json.loads(one) for one in file.read_text().splitlines() if one.strip()]
            for name, file in SESSIONS.items()
        }

    def lay_for(self, verb: tuple[str, ...], chance: random.Random) -> dict[str, str]:
        """Lay the mutant that this verb reads. The result: what the words of the verb stand for."""
        named = {"RUN": self.run.name, "OUT": str(self._folder / "out")}
        (session,) = [word for word in verb if word in SESSIONS] or [None]
        if session is None:
            self.lay(chance)
            return named
        # Runs of earlier mutants would make the store grow.
        for other in self.run.parent.iterdir():
            if other != self.run:
                shutil.rmtree(other, ignore_errors=True)
        rows = list(self._sessions[session])
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(rows))
            rows[at] = mutated(rows[at], chance)
        if chance.random() < 0.1:
            chance.shuffle(rows)
        file = self._folder / f"{session.lower()}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return {**named, session: str(file)}

    def lay(self, chance: random.Random) -> None:
        rows, manifest = list(self._rows), self._manifest
        if chance.random() < 0.2:
            manifest = mutated(manifest, chance)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(rows))
            rows[at] = mutated(rows[at], chance)
        if chance.random() < 0.1:
            chance.shuffle(rows)
        crc, raw = 0, b""
        for row in rows:
            body = json.dumps(row, separators=(",", ":")).encode()
            if not isinstance(row, dict) or not row:
                raw += body + b"\n"
                continue
            line, crc = close_line(body[:-1], crc)
            raw += line
        self._file.write_bytes(raw)
        (self.run / "manifest.json").write_text(json.dumps(manifest))


def attack(count: int, seed: int, folder: Path, *, slowest_s: int = 20) -> list[Found]:
    """Run a verb on each of `count` mutants. The result is what broke."""
    chance = random.Random(seed)
    os.environ["PLAYHEAD_HOME"] = str(folder)
    os.environ["COLUMNS"] = "100"
    mutants = Mutants(folder)
    found = []
    for number in range(count):
        verb = VERBS[number % len(VERBS)]
        named = mutants.lay_for(verb, chance)
        if number % 500 == 0:
            for stale in folder.glob("library.db*"):
                stale.unlink()
        what = tried(verb, named, slowest_s)
        if what is not None:
            found.append(Found(number, " ".join(verb), what))
    return found


def one_batch(count: int, seed: int) -> tuple[int, list[Found], float]:
    """In a process of its own: what a verb leaves in memory must not add up."""
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        return count, attack(count, seed, Path(folder)), most_memory_mb()


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def tried(verb: tuple[str, ...], named: dict[str, str], slowest_s: int) -> str | None:
    """Run a verb in this process; the traceback of an error that is not ours, else None."""
    out = Path(named["OUT"])
    if out.is_dir():
        shutil.rmtree(out)
    out.unlink(missing_ok=True)
    before = sys.argv
    sys.argv = ["playhead", *(named.get(word, word) for word in verb)]
    shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape")
    signal.signal(signal.SIGALRM, _too_slow)
    signal.alarm(slowest_s)
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            main()
    except SystemExit:
        pass
    except BaseException:  # noqa: BLE001  this is what the attack looks for
        return traceback.format_exc(limit=-4)
    finally:
        signal.alarm(0)
        sys.argv = before
    shown.flush()
    said = shown.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
    return said[-1500:] if "Traceback (most recent" in said else None


def _too_slow(*_: object) -> None:
    raise TimeoutError("hangs")


def most_memory_mb() -> float:
    # Not `ru_maxrss`: Linux counts the parent in, from which this process was forked.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return (
        int(peak[1]) / 1024 if peak else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    )
