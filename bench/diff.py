"""How long two runs of ten thousand events take to be compared: `python -m bench.diff`.

Knows how to make long tapes of a loop: a model, a tool, and so on. Three scenes: the same run twice, one
that goes another way at every step, and one with steps put in.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.recording.chunks import as_text
from playhead.story import tell
from playhead.story.comparison.compare import compare
from playhead.tape.format import FORMAT_VERSION, close_line
from playhead.tape.manifest import Manifest, write_manifest
from playhead.tape.reader import Tape
from playhead.views.html_comparison import comparison_page

LIMIT_S = 1.0
WORDS = ["the", "order", "was", "late", "and", "so", "the", "agent", "looked", "it", "up", "again"]


def exchange(number: int, answer: str) -> list[tuple[str, dict[str, Any]]]:
    """Three events: a model is asked and says something."""
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": f"Question {number}: " + " ".join(WORDS)}],
    }
    request = {"method": "POST", "url": "https://api.anthropic.com/v1/messages", "headers": {}}
    request["body"] = as_text(json.dumps(body).encode())
    said = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"]}
    said |= {"content": [{"type": "text", "text": answer}], "stop_reason": "end_turn"}
    said["usage"] = {"input_tokens": 40, "output_tokens": 20}
    raw = json.dumps(said).encode()
    chunk = {"stream": "body", **as_text(raw), "sizes": [len(raw)], "at_ns": [0]}
    call = {"boundary": "llm", "name": "anthropic.messages", "api": "anthropic.messages"}
    return [
        ("call", {**call, "request": request}),
        ("chunk", chunk),
        ("outcome", {"how": "returned", "took_ns": 1_000_000, "status": 200}),
    ]


def tool(name: str, number: int) -> list[tuple[str, dict[str, Any]]]:
    asked = {"boundary": "tool", "name": name, "request": {"arguments": {"order": number}}}
    done = {"how": "returned", "took_ns": 1_000_000, "value": f"{' '.join(WORDS)} {number}"}
    return [("call", asked), ("outcome", done)]


def make_run(
    home: Path, name: str, events: int, answer: Callable[[int], str], extra: int = 0
) -> Path:
    """`extra`: after so many rounds another tool is called."""
    path = home / name
    path.mkdir()
    told: list[tuple[str, dict[str, Any]]] = [
        ("segment.start", {"format": FORMAT_VERSION, "run": name, "generation": 0}),
        ("run.start", {"run": name, "name": name}),
    ]
    number = 0
    while len(told) < events:
        number += 1
        told += exchange(number, answer(number)) + tool("lookup", number)
        if extra and number % extra == 0:
            told += tool("audit", number)
    lines, crc, call = [], 0, 0
    for seq, (kind, data) in enumerate(told):
        call = seq if kind == "call" else call
        members = {"seq": seq, "kind": kind, "wall": 10**18 + seq, "mono": 10**9 + seq, "pid": 7}
        owned = {"call": call} if kind in ("chunk", "outcome") else {}
        members |= {"lane": "main", "parent": 0, "data": {**owned, **data}}
        line, crc = close_line(json.dumps(members, separators=(",", ":")).encode()[:-1], crc)
        lines.append(line)
    (path / "tape-7.jsonl").write_bytes(b"".join(lines))
    write_manifest(path, Manifest(run=name, name=name, status="ok"))
    return path


def measure(left: Path, right: Path) -> tuple[float, float, float]:
    """Seconds of processor time to read both, to compare them, to make the page."""
    began = clock.cpu_ns()
    stories = [tell(Tape(one)) for one in (left, right)]
    read = clock.cpu_ns()
    comparison = compare(*stories)
    compared = clock.cpu_ns()
    comparison_page(comparison)
    return (read - began) / 1e9, (compared - read) / 1e9, (clock.cpu_ns() - compared) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    asked = parser.parse_args()
    slow = 0
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        first = make_run(home, "first", asked.events, lambda n: f"Answer {n}: {' '.join(WORDS)}")
        make_run(home, "warm", 10, str)
        measure(home / "warm", home / "warm")  # the price list is read once
        scenes = {
            "the same": first,
            "another answer at every step": make_run(
                home, "other", asked.events, lambda n: f"{' '.join(WORDS[::-1])}: answer {n}"
            ),
            "a step put in at every tenth": make_run(
                home, "longer", asked.events, lambda n: f"Answer {n}: {' '.join(WORDS)}", extra=10
            ),
        }
        sys.stdout.write(f"two runs of {asked.events:,} events: read, compare, page\n")
        for name, other in scenes.items():
            rounds = [measure(first, other) for _ in range(3)]
            read, compared, page = min(rounds, key=lambda took: took[0] + took[1])
            slow += read + compared > LIMIT_S
            sys.stdout.write(f"  {read:5.2f} + {compared:5.2f} + {page:5.2f} s  {name}\n")
    if slow:
        sys.exit(f"{slow} of them took more than {LIMIT_S:g} s")


if __name__ == "__main__":
    main()
