"""Make tapes by hand, line by line: chosen pids, clocks and runs, and every kind of damage."""

import json
from pathlib import Path
from typing import Any

from playhead.tape.format import close_line
from playhead.tape.manifest import Manifest, SegmentSummary, write_manifest

HOST = "nowhere"


class Segment:
    """One segment; what is added is on the disk at once."""

    def __init__(self, run: Path, name: str, clock: "Clock") -> None:
        self.name = name
        self.pid = int(name.partition("-")[0])
        self.path = run / f"tape-{name}.jsonl"
        self.lines: list[bytes] = []
        self.crc = 0
        self.seq = 0
        self._clock = clock
        self._ids = {"pid": self.pid, "seg": name} if "-" in name else {"pid": self.pid}

    def add(self, kind: str, data: Any = None, **members: Any) -> bytes:
        mono = members.pop("mono", None) or self._clock.tick()
        seq = members.pop("seq", self.seq)
        told = {"seq": seq, "kind": kind, "wall": 10**18 + mono, "mono": mono, **self._ids}
        told |= {"thread": 1, "lane": "main", "at": "agent.py:7 act", "who": "agent", "parent": 0}
        line, self.crc = close_line(compact({**told, **members, "data": data})[:-1], self.crc)
        self.seq = seq + 1
        self.lines.append(line)
        with self.path.open("ab") as file:
            file.write(line)
        return line

    def end(self) -> bytes:
        return self.add("segment.end", {"events": len(self.lines) + 1, "lost": 0})

    def rewrite(self, lines: list[bytes]) -> None:
        """Damage: these lines instead of ours."""
        self.path.write_bytes(b"".join(lines))

    @property
    def summary(self) -> SegmentSummary:
        size = sum(map(len, self.lines))
        return SegmentSummary(
            name=self.name, events=len(self.lines), bytes=size, crc=f"{self.crc:08x}"
        )


def compact(members: Any) -> bytes:
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000

    def tick(self) -> int:
        self.now += 1_000
        return self.now


class Run:
    """A run's folder, and the segments in it."""

    def __init__(self, path: Path, run_id: str = "20261115-071105-k3f9") -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.id = run_id
        self.clock = Clock()
        self.segments: list[Segment] = []

    def segment(self, name: str = "100", *, start: bool = True, **told: Any) -> Segment:
        segment = Segment(self.path, name, self.clock)
        self.segments.append(segment)
        if start:
            known = {"format": 1, "run": self.id, "generation": 0, "level": "full"}
            known |= {"redacted": True, "pid": segment.pid, "ppid": 1, "birth": "7", "host": HOST}
            segment.add(
                "segment.start", {**known, "python": "3.11.7", "argv": ["agent.py"], **told}
            )
        return segment

    def manifest(self, **members: Any) -> None:
        summaries = [segment.summary for segment in self.segments]
        known: dict[str, Any] = {"status": "ok", "host": HOST, "segments": summaries}
        known["events"] = sum(one.events for one in summaries)
        write_manifest(self.path, Manifest(run=self.id, **{**known, **members}))


def small_run(path: Path) -> Run:
    """Two processes, one inside the other, ended as they should."""
    run = Run(path)
    root = run.segment("100")
    root.add("run.start", {"name": "greeter", "run": run.id, "command": ["python", "agent.py"]})
    root.add("call", {"boundary": "tool", "name": "greet", "request": {"to": "Zoë"}})
    child = run.segment("101")
    child.add("output", {"stream": "stdout", "text": "hello\n"}, parent="100:2")
    child.end()
    root.add("outcome", {"call": 2, "how": "returned", "took_ns": 5, "value": "hello"}, why="asked")
    root.add("run.end", {"status": "ok", "exit_code": 0, "error": None, "took_ns": 9_000})
    root.end()
    run.manifest(exit_code=0)
    return run
