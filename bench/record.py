"""What one recorded event costs, side by side with the floor and with peers.

    python -m bench.record [--rounds 30]

The floor is the least code that does the job: one event with the same eleven members (seq, kind, two clocks, pid,
thread, lane, place, who, parent, data), encoded by msgspec (or by the standard library) and written with one
write(2): no checksum, no lock, no redaction, no look at the values. Rounds are interleaved and the median round
counts: compare ratios, not microseconds. The payload is prose with an id, a number and a flag, as agents emit it.

Goals: redaction off at most 2.5 × the floor of the same encoder; on, at most 4 × at 400 B and 6 × at 4 KiB;
disabled under 0.2 µs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec.json

import playhead
from playhead import clock, jsonbytes
from playhead.runs import NO_RUN

Once = Callable[[], Any]

WORDS = [
    "the",
    "customer",
    "asks",
    "for",
    "a",
    "refund",
    "of",
    "an",
    "order",
    "that",
    "arrived",
    "broken",
    "last",
    "week",
    "and",
    "wants",
    "it",
    "in",
    "writing",
]
PER_ROUND = 300


def payload(size: int) -> dict[str, Any]:
    chance = random.Random(7)
    text = ""
    while len(text) < size - 120:
        text += chance.choice(WORDS) + " "
    return {
        "tool": "search",
        "id": "call 17",
        "text": text,
        "tokens": 412,
        "ok": True,
        "args": {"k": 5, "q": "broken"},
    }


def floor(folder: Path, data: dict[str, Any], encode: Callable[[Any], bytes], name: str) -> Once:
    fd = os.open(folder / f"{name}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    pid, thread = os.getpid(), clock.thread_id()
    seq = 0

    def once() -> None:
        nonlocal seq
        seq += 1
        event = {
            "seq": seq, "kind": "tool:result", "wall": clock.wall_ns(), "mono": clock.mono_ns(), "pid": pid,
            "thread": thread, "lane": "main", "at": "agent.py:42 respond", "who": "agent", "parent": 0, "data": data,
        }  # fmt: skip
        os.write(fd, encode(event) + b"\n")

    return once


def ours(folder: Path, data: dict[str, Any], *, redact: bool, standard: bool) -> Once:
    recording = playhead.record(
        name="bench", store=folder / f"store-{redact}-{standard}", redact=redact
    )
    run = recording.__enter__()
    if standard:
        _use(run.recorder, jsonbytes.encode_std)

    def once() -> None:
        run.emit("tool:result", data)

    return once


def _use(recorder: Any, encode: Callable[[Any], bytes]) -> None:
    """Keep the recorder from taking msgspec, as in a host that does not have it."""
    for holder in (recorder, getattr(recorder, "_payloads", None)):
        for name in ("_encode", "encode_with", "_encoder"):
            if holder is not None and callable(getattr(holder, name, None)) and name != "encode":
                setattr(holder, name, encode)


def structlog_file(folder: Path, data: dict[str, Any]) -> Once:
    import orjson
    import structlog

    logger = structlog.wrap_logger(
        structlog.BytesLogger((folder / "structlog.jsonl").open("ab", buffering=0)),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.JSONRenderer(serializer=lambda event, **_: orjson.dumps(event)),
        ],
    )
    return lambda: logger.info("tool:result", data=data)


def otel(folder: Path, data: dict[str, Any], *, batch: bool) -> Once:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        ConsoleSpanExporter,
        SimpleSpanProcessor,
    )

    out = (folder / f"otel-{batch}.jsonl").open("w", buffering=1)
    exporter = ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\n")
    provider = TracerProvider()
    provider.add_span_processor(
        BatchSpanProcessor(exporter) if batch else SimpleSpanProcessor(exporter)
    )
    tracer = provider.get_tracer("bench")
    flat = {
        name: item if not isinstance(item, dict) else json.dumps(item)
        for name, item in data.items()
    }

    def once() -> None:
        with tracer.start_as_current_span("tool:result", attributes=flat):
            pass

    return once


def langfuse(folder: Path, data: dict[str, Any]) -> Once:
    from langfuse import Langfuse

    client = Langfuse(public_key="pk", secret_key="sk", host="http://127.0.0.1:9", timeout=1)  # noqa: S106  nobody's

    def once() -> None:
        with client.start_as_current_observation(name="tool:result", input=data):
            pass

    return once


def agenttape(folder: Path, data: dict[str, Any]) -> Once:
    import agenttape

    agenttape.use_cassette(folder / "agenttape.yaml", mode="record").__enter__()
    return lambda: agenttape.record_call("tool", {"n": 1}, lambda: data)


def runtape(folder: Path, data: dict[str, Any]) -> Once:
    import runtape

    recorder = runtape.Recorder(folder / "runtape.jsonl")
    return lambda: recorder.log("tool:result", data)


def measure(cases: dict[str, Once], rounds: int) -> dict[str, float]:
    """Median µs a call, of interleaved rounds."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for once in cases.values():
        for _ in range(PER_ROUND):
            once()
    for _ in range(rounds):
        for name, once in cases.items():
            began = clock.mono_ns()
            for _ in range(PER_ROUND):
                once()
            times[name].append((clock.mono_ns() - began) / PER_ROUND / 1000)
    return {name: statistics.median(found) for name, found in times.items()}


def cases_for(folder: Path, size: int) -> dict[str, Once]:
    data = payload(size)
    encode = msgspec.json.Encoder().encode
    cases = {
        "floor: msgspec + write": floor(folder, data, encode, "msgspec"),
        "playhead, redaction off": ours(folder, data, redact=False, standard=False),
        "playhead, redaction on": ours(folder, data, redact=True, standard=False),
        "floor: json + write": floor(folder, data, jsonbytes.encode_std, "json"),
        "playhead without msgspec, redaction off": ours(folder, data, redact=False, standard=True),
        "playhead, switched off": lambda: NO_RUN.emit("tool:result", data),
    }
    peers: dict[str, Callable[[], Once]] = {
        "structlog + orjson to a file": lambda: structlog_file(folder, data),
        "OpenTelemetry simple, JSON file": lambda: otel(folder, data, batch=False),
        "OpenTelemetry batch, JSON file (loses on kill)": lambda: otel(folder, data, batch=True),
        "Langfuse (loses on kill)": lambda: langfuse(folder, data),
        "agenttape (loses on kill)": lambda: agenttape(folder, data),
        "runtape": lambda: runtape(folder, data),
    }
    for name, make in peers.items():
        try:
            once = make()
            once()
        except Exception as error:  # noqa: BLE001  a peer that is not installed or has changed is left out, aloud
            print(f"({name} is left out: {type(error).__name__}: {error})")
            continue
        cases[name] = once
    return cases


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for size in (400, 4096):
            place = Path(folder) / str(size)
            place.mkdir()
            found[size] = measure(cases_for(place, size), rounds)
        print("| case | 400 B, µs | × floor | 4 KiB, µs | × floor |\n|---|---|---|---|---|")
        for name in found[400]:
            if name not in found[4096]:
                continue
            base = (
                "floor: json + write"
                if "without msgspec" in name or "json +" in name
                else "floor: msgspec + write"
            )
            cells = [
                f"{found[size][name]:.2f} | {found[size][name] / found[size][base]:.2f}"
                for size in (400, 4096)
            ]
            print(f"| {name} | {' | '.join(cells)} |")
    sys.stdout.flush()
    os._exit(0)  # peers' background threads would wait for a server that is not there


if __name__ == "__main__":
    main()
