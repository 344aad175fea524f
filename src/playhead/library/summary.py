"""What a list says of a run: counts, tokens, cost. Data, and what such data was made from; the
making is in `summarise`, which needs the whole model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zlib import crc32

from playhead._version import __version__
from playhead.tape.marks import FILE as MARKS
from playhead.tape.store import MANIFEST

_FACTS = (MANIFEST, MARKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """None: unknown. A cost is a lower bound where `unpriced` calls exist."""

    events: int = 0
    calls: int = 0
    llm_calls: int = 0
    tool_calls: int = 0
    failures: int = 0
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    unpriced: int = 0
    lost: int = 0
    holes: int = 0
    failure: str | None = None
    last_seam: str | None = None
    duration_s: float | None = None


def encode_summary(state: str, summary: Summary) -> bytes:
    """For the catalogue, with the state of the tape that it was made of."""
    members = {"state": state, **{name: getattr(summary, name) for name in Summary.__slots__}}
    return json.dumps(members).encode("utf-8", "backslashreplace")


def decode_summary(raw: bytes, state: str | None = None) -> Summary | None:
    """None: it cannot be read, or was made of another state than that."""
    try:
        members = json.loads(raw)
        made_of = members.pop("state", None)
        return Summary(**members) if state is None or made_of == state else None
    except (AttributeError, TypeError, ValueError):
        return None


def stamp_of(run: Path | str, prices: str) -> str:
    """Changes whenever the manifest, a segment or the prices do. A process that outlives its run
    adds to a tape whose manifest is written already: so the segments are looked at themselves.
    """
    segments = size = manifest = 0
    try:
        with os.scandir(run) as files:
            for file in files:
                if file.name.startswith("tape"):
                    segments += 1
                    size += file.stat().st_size
                elif file.name in _FACTS:
                    manifest += file.stat().st_mtime_ns
    except OSError:
        return ""
    return f"{manifest} {segments} {size} {prices}"


def stamp_of_prices(overrides: Mapping[str, Any]) -> str:
    """Changes with the user's own prices, the installed ones, and how we count."""
    own = crc32(json.dumps(overrides, sort_keys=True, default=str).encode())
    spec = find_spec("genai_prices")
    try:
        installed = Path(spec.origin).stat().st_mtime_ns if spec and spec.origin else 0
    except OSError:
        installed = 0
    return f"{__version__} {own:x} {installed}"
