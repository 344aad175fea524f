"""What one recorded event costs, side by side with the floor and with peers.

    python -m bench.record [--rounds 40] [--write]

The floor is the least code that does the job: an event with the same eleven members (seq, kind, wall
and monotonic clock, pid, thread, lane, place, who, parent, data), as a msgspec Struct (or a dict for
the standard library's `json`), encoded whole and written with one write(2) to a file opened for
appending. No checksum, no lock, no redaction, no look at the values, nothing that can fail.

The payload is what an agent emits: prose, with an id as model providers make them, a UUID, a
timestamp, a count and a flag. Cases take turns within a round; a ratio is the median over the rounds
of a case's time to the floor's in the same round, so that what else the machine does weighs on both.
Peers that work in the background (OpenTelemetry's batches, Langfuse) run in a group of their own,
and what their threads do afterwards is not counted: their true cost is higher.

Cases of Playhead are in Python, unless they name the native core.

Goals: redaction off at most 2.5 × the floor of the same encoder; on, at most 4 × at 400 B and 6 × at
4 KiB; switched off, under 0.2 µs. `--write` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

import playhead
from bench.peers import Make, Once, agenttape, langfuse, opentelemetry, runtape, structlog_to_file
from bench.report import put_table
from playhead import clock
from playhead.encoding import jsonbytes
from playhead.host import native_core
from playhead.launch import native_build
from playhead.recording.runs import NO_RUN

SIZES = (400, 4096)
PER_ROUND = 250
PROSE = (
    "The customer wrote again this morning and asked whether the refund for the broken lamp had been "
    "sent; we looked at the order and found that the payment went back to the card on the same day. "
)
FLOOR, FLOOR_OF_JSON = "floor: msgspec and one write", "floor: json and one write"
NATIVE_OFF, NATIVE_ON = (
    "playhead, native core, redaction off",
    "playhead, native core, redaction on",
)
NATIVE_SECRET = "playhead, native core, a secret is redacted"  # noqa: S105  a name of a case
OFF, ON = "playhead, redaction off", "playhead, redaction on"
OFF_JSON, ON_JSON = "playhead with json, redaction off", "playhead with json, redaction on"
SWITCHED_OFF = "playhead, switched off"
# (case, size) → the most that it may cost, in times the floor of its encoder.
GOALS = {
    **{(case, size): 2.5 for case in (OFF, OFF_JSON) for size in SIZES},
    **{(case, 400): 4.0 for case in (ON, ON_JSON)},
    **{(case, 4096): 6.0 for case in (ON, ON_JSON)},
    (NATIVE_ON, 400): 1.6,
    (NATIVE_ON, 4096): 1.4,
    **{(NATIVE_SECRET, size): 2.5 for size in SIZES},
}
SWITCHED_OFF_US = 0.2

# size → case → (µs, times the floor)
Found = dict[int, dict[str, tuple[float, float]]]


def payload(size: int) -> dict[str, Any]:
    """An event's data whose JSON has `size` bytes."""
    data = {
        "tool": "search_orders",
        "id": "toolu_01A09q90qw90lq917835lq9",
        "order": "3f2b8c1e-9a4d-4e2f-8b7a-1c2d3e4f5a6b",
        "at": "2026-11-15T07:11:05.123Z",
        "tokens": 412,
        "ok": True,
        "text": "",
    }
    room = size - len(jsonbytes.encode_std(data))
    return {**data, "text": (PROSE * (size // len(PROSE) + 1))[:room]}


class FloorEvent(msgspec.Struct):
    """An event as the floor writes it."""

    seq: int
    kind: str
    wall: int
    mono: int
    pid: int
    thread: int
    lane: str
    at: str
    who: str
    parent: int
    data: Any


def floor(folder: Path, data: dict[str, Any]) -> Once:
    fd = os.open(folder / "floor.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    encode, pid, thread = msgspec.json.Encoder().encode, os.getpid(), clock.thread_id
    wall, mono, write, place = clock.wall_ns, clock.mono_ns, os.write, "agent.py:42 respond"
    seq = 0

    def once() -> None:
        nonlocal seq
        seq += 1
        event = FloorEvent(
            seq, "tool:result", wall(), mono(), pid, thread(), "main", place, "agent", 0, data
        )
        write(fd, encode(event) + b"\n")

    return once


def floor_of_json(folder: Path, data: dict[str, Any]) -> Once:
    fd = os.open(folder / "floor-json.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    encode, pid, thread = jsonbytes.encode_std, os.getpid(), clock.thread_id
    wall, mono, write, place = clock.wall_ns, clock.mono_ns, os.write, "agent.py:42 respond"
    seq = 0

    def once() -> None:
        nonlocal seq
        seq += 1
        event = {
            "seq": seq,
            "kind": "tool:result",
            "wall": wall(),
            "mono": mono(),
            "pid": pid,
            "thread": thread(),
            "lane": "main",
            "at": place,
            "who": "agent",
            "parent": 0,
            "data": data,
        }
        write(fd, encode(event) + b"\n")

    return once


def ours(*, redact: bool, encode: jsonbytes.Encode) -> Make:
    """In Python, with this encoder."""

    def make(folder: Path, data: dict[str, Any]) -> Once:
        store = folder / f"store-{redact}-{encode is jsonbytes.encode_std}"
        run: Any = playhead.record(name="bench", store=store, redact=redact).__enter__()
        run.recorder.encode_with(encode)

        def once() -> None:
            core, native_core.core = native_core.core, None
            run.emit("tool:result", data)
            native_core.core = core

        return once

    return make


def native(*, redact: bool, secret: bool = False) -> Make:
    """The same with the native core."""

    def make(folder: Path, data: dict[str, Any]) -> Once:
        if native_build.core_of(os.environ) is None:
            raise RuntimeError(native_core.reason)
        store = folder / f"store-native-{redact}-{secret}"
        run: Any = playhead.record(name="bench", store=store, redact=redact).__enter__()
        if secret:
            data = {**data, "text": data["text"][:-30] + " password=hunter2-hunter2-and "}
        return lambda: run.emit("tool:result", data)

    return make


def switched_off(_: Path, data: dict[str, Any]) -> Once:
    return lambda: NO_RUN.emit("tool:result", data)


_MSGSPEC = msgspec.json.Encoder().encode
# Two groups, each with its floor: what works in the background must not weigh on what does not.
GROUPS: tuple[dict[str, Make], ...] = (
    {
        FLOOR: floor,
        NATIVE_OFF: native(redact=False),
        NATIVE_ON: native(redact=True),
        NATIVE_SECRET: native(redact=True, secret=True),
        OFF: ours(redact=False, encode=_MSGSPEC),
        ON: ours(redact=True, encode=_MSGSPEC),
        SWITCHED_OFF: switched_off,
        FLOOR_OF_JSON: floor_of_json,
        OFF_JSON: ours(redact=False, encode=jsonbytes.encode_std),
        ON_JSON: ours(redact=True, encode=jsonbytes.encode_std),
        "structlog and orjson to a file": structlog_to_file,
        "agenttape (in memory until the end)": agenttape,
        "runtape": runtape,
    },
    {
        FLOOR: floor,
        "OpenTelemetry, simple, JSON file": opentelemetry(batch=False),
        "OpenTelemetry, batch, JSON file": opentelemetry(batch=True),
        "Langfuse, batch, dead endpoint": langfuse,
    },
)


def measure(cases: dict[str, Once], rounds: int) -> dict[str, tuple[float, float]]:
    """Median µs of a call, and its median ratio to the floor of the same round."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for once in cases.values():
        for _ in range(2 * PER_ROUND):
            once()
    for _ in range(rounds):
        for name, once in cases.items():
            # Processor time of this thread, so that a busy machine does not count.
            began = clock.thread_cpu_ns()
            for _ in range(PER_ROUND):
                once()
            times[name].append((clock.thread_cpu_ns() - began) / PER_ROUND / 1000)
    found = {}
    for name, taken in times.items():
        floors = times[FLOOR_OF_JSON if name in (FLOOR_OF_JSON, OFF_JSON, ON_JSON) else FLOOR]
        ratio = statistics.median(a / b for a, b in zip(taken, floors, strict=True))
        found[name] = (statistics.median(taken), ratio)
    return found


def made(group: dict[str, Make], folder: Path, size: int) -> dict[str, Once]:
    cases = {}
    for name, make in group.items():
        try:
            once = make(folder, payload(size))
            once()
        except Exception as error:  # noqa: BLE001  a peer that is missing or has changed is left out, aloud
            print(f"{name} is left out: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        cases[name] = once
    return cases


def table(found: Found) -> str:
    lines = ["| case | 400 B, µs | × floor | 4 KiB, µs | × floor |", "|---|---:|---:|---:|---:|"]
    for name in found[SIZES[0]]:
        cells = []
        for micros, ratio in (found[size][name] for size in SIZES if name in found[size]):
            cells += [f"{micros:.2f}", "" if name == SWITCHED_OFF else f"{ratio:.2f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def missed(found: Found) -> list[str]:
    said = [
        f"{name} at {size} B: {found[size][name][1]:.2f} × the floor, goal {most}"
        for (name, size), most in GOALS.items()
        if name in found[size] and found[size][name][1] > most
    ]
    off = found[SIZES[0]][SWITCHED_OFF][0]
    return said + ([f"switched off: {off:.2f} µs"] if off >= SWITCHED_OFF_US else [])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--write", action="store_true", help="the table into docs/benchmarks.md")
    options = parser.parse_args()
    found: Found = {size: {} for size in SIZES}
    with tempfile.TemporaryDirectory() as folder:
        for number, group in enumerate(GROUPS):
            for size in SIZES:
                place = Path(folder) / f"{size}-{number}"
                place.mkdir()
                measured = measure(made(group, place, size), options.rounds)
                found[size] = {**measured, **found[size]}
    found = {
        size: {name: found[size][name] for group in GROUPS for name in group if name in found[size]}
        for size in SIZES
    }
    print(table(found))
    if options.write:
        put_table("record", table(found))
    failures = missed(found)
    print("\n".join(failures) or "all goals met", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    # Not sys.exit: peers' threads would wait for a server that is not there.
    os._exit(main())
