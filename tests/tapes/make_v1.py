"""Wrote the golden tapes of format 1, once. They are never written again: it does nothing to a
folder that is there.

    python tests/tapes/make_v1.py
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from building import Run  # noqa: E402  the builder lies beside this file, in no package

from playhead.tape.blobs import push  # noqa: E402
from playhead.tape.sealed.seal import seal  # noqa: E402

TARGET = HERE / "v1"
LARGE = "All work and no play makes Jack a dull boy.\n" * 1_500


def record(folder: Path) -> Run:
    """A run with every kind of our vocabulary, two processes, a turn, a blob, values of all kinds."""
    run = Run(folder, "20261115-071105-k3f9")
    root = run.segment("4711")
    known = {"run": run.id, "name": "greeter", "tags": {"team": "north"}, "level": "full"}
    known |= {"command": ["python", "agent.py"], "cwd": "/srv/agent", "project": "/srv/agent"}
    root.add("run.start", {**known, "git_commit": None, "playhead": "0.1.0", "resumed": False})
    root.add("hook", {"boundary": "http", "library": "httpx", "version": "0.28.1"})
    root.add("hole", {"what": "grpc", "why": "no interceptor"})
    root.add("turn.start", {"name": "respond", "purpose": "greet", "input": "Zoë"}, why="greet")
    request = {"model": "m-1", "messages": [{"role": "user", "content": "Say hello to Zoë."}]}
    call = {"boundary": "llm", "name": "POST api.example/v1/messages", "request": request}
    root.add("call", {**call, "api": "anthropic"}, parent=4)
    head = {"status": 200, "headers": [["content-type", "text/event-stream"]]}
    root.add("chunk", {"call": 5, "stream": "head", "value": head, "at_ns": [700]}, parent=5)
    chunk = {"call": 5, "stream": "body", "text": 'data: {"hi":1}\n\n', "sizes": [8, 8]}
    root.add("chunk", {**chunk, "at_ns": [900, 1_900]}, parent=5)
    binary = {"call": 5, "stream": "body", "b64": "/wD+", "sizes": [3], "at_ns": [2_900]}
    root.add("chunk", binary, parent=5)
    outcome = {"call": 5, "how": "returned", "took_ns": 4_000, "chunks": 3, "bytes": 19}
    root.add("outcome", {**outcome, "value": None}, parent=5)
    tool = {"boundary": "tool", "name": "greet", "effect": "read", "request": {"args": ["Zoë"]}}
    root.add("call", tool, cause=9, why="the model asked for it", parent=4)
    child = run.segment("4712")
    child.add("output", {"stream": "stdout", "text": "hello\n"}, parent="4711:10", lane="main/1")
    readings = [["main/1", "time", "agent.py:9 now", [1794741627.5, 1794741628.5]]]
    child.add("ambient", {"readings": readings}, parent="4711:10")
    child.end()
    error = {"$exception": "builtins:ValueError", "message": "no", "args": ["no"]}
    root.add("outcome", {"call": 10, "how": "raised", "took_ns": 3_000, "error": error}, parent=10)
    seam = {"name": "drafted", "at_ns": 8_000, "took_ns": 8_000}
    root.add("seam", {"turn": 4, **seam, "value": 1}, parent=4)
    source = {"id": "doc-1", "hash": "abc", "score": 0.5, "included": True, "why": None, "bytes": 9}
    counts = {"turn": 4, "count": 1, "included": 1, "dropped": 0, "bytes": 9}
    root.add("retrieval", {**counts, "sources": [source]})
    root.add("snapshot", {"store": "memory", "value": {"$map": [[{"$tuple": [1, 2]}, "x"]]}})
    large = {"$blob": push(folder, LARGE.encode()), "size": len(LARGE), "as": "text"}
    odd = [{"$bytes": "AP8="}, {"$datetime": "2026-11-15T07:11:05+00:00"}, {"$float": "inf"}]
    root.add("note", {"text": large, "odd": odd, "token": "[redacted:field:0a1b2c3d]"})
    root.add("seam", {"any": "thing"}, user=True, parent=4)
    root.add("gap", {"lost": 2, "why": "OSError: [Errno 28] No space left on device"})
    ended = {"turn": 4, "name": "respond", "how": "returned", "took_ns": 20_000}
    root.add(
        "turn.end", {**ended, "last_seam": "drafted", "seams": [seam], "value": "hello"}, parent=4
    )
    parting = {"kind": "missed", "step": 7, "boundary": "tool", "name": "greet", "lane": "main"}
    root.add("divergence", {**parting, "request": {"args": ["Zoe"]}, "advice": "Record again."})
    root.add("run.end", {"status": "ok", "exit_code": 0, "error": None, "took_ns": 30_000})
    root.end()
    run.manifest(exit_code=0, name="greeter", lost=2, tags={"team": "north"})
    return run


def torn(folder: Path) -> None:
    """As `kill -9` may leave it: no end, half a line, a manifest that says running."""
    run = record(folder)
    root = run.segments[0]
    root.path.write_bytes(b"".join(root.lines[:12]) + root.lines[12][:100])
    run.manifest(status="interrupted", segments=[], events=0)


def corrupt(folder: Path) -> None:
    """A line edited, one of garbage, one removed, two swapped."""
    lines = record(folder).segments[0].lines
    edited = lines[3].replace(b"grpc", b"http")
    damaged = [*lines[:3], edited, lines[4], b"\x00\xff garbage\n", *lines[6:8], *lines[9:]]
    damaged[12], damaged[13] = damaged[13], damaged[12]
    (folder / "tape-4711.jsonl").write_bytes(b"".join(damaged))


def future(folder: Path) -> None:
    """From a Playhead that is not written yet."""
    run = Run(folder, "20361115-071105-k3f9")
    root = run.segment("4711", format=99, colour="blue")
    root.add("thought", {"deep": True}, dimension=5)
    run.manifest(format=99)


def unknown(folder: Path) -> None:
    """Kinds and members that format 1 does not know; a tape may have them, and they are kept."""
    run = Run(folder, "20261115-071105-k3f9")
    root = run.segment("4711", colour="blue")
    root.add("telepathy", {"to": "Zoë", "deep": [{"er": None}]}, strength=0.5, tags={"a": [1]})
    root.add("call", {"boundary": "smoke", "name": "signal", "puffs": 3}, priority="high")
    root.end()
    run.manifest(extra={"mood": "calm"})


def sealed(folder: Path) -> None:
    record(folder)
    seal(folder)


def main() -> None:
    for make in (record, torn, corrupt, future, unknown, sealed):
        folder = TARGET / ("whole" if make is record else make.__name__)
        if folder.exists():
            print(f"{folder} is there: left as it is")
            continue
        make(folder)
        print(f"{folder} {json.dumps(sorted(path.name for path in folder.iterdir()))}")


if __name__ == "__main__":
    main()
