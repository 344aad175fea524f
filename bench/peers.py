"""Other ways to keep an event, each made ready to keep one more. Knows how peers are used; not how
they are measured.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

Once = Callable[[], Any]
Make = Callable[[Path, dict[str, Any]], Once]


def structlog_to_file(folder: Path, data: dict[str, Any]) -> Once:
    """As its documentation says it is fastest: bytes, orjson, one unbuffered file."""
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


def opentelemetry(*, batch: bool) -> Make:
    """A span an event, its data as attributes, JSON lines into a file."""

    def make(folder: Path, data: dict[str, Any]) -> Once:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import (
            BatchSpanProcessor,
            ConsoleSpanExporter,
            SimpleSpanProcessor,
        )

        exporter = ConsoleSpanExporter(
            out=(folder / f"otel-{batch}.jsonl").open("w", buffering=1),
            formatter=lambda span: span.to_json(indent=None) + "\n",
        )
        provider = TracerProvider()
        processor = BatchSpanProcessor(exporter) if batch else SimpleSpanProcessor(exporter)
        provider.add_span_processor(processor)
        tracer = provider.get_tracer("bench")

        def once() -> None:
            with tracer.start_as_current_span("tool:result", attributes=data):
                pass

        return once

    return make


def langfuse(folder: Path, data: dict[str, Any]) -> Once:
    """To an address where nobody listens: what is left is what it costs the caller."""
    from langfuse import Langfuse

    logging.disable(logging.CRITICAL)
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
