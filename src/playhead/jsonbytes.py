"""JSON to bytes and back: msgspec where the host has it, the standard library elsewhere.

Same bytes, other speed: nothing that is written or hashed may depend on which one ran. Knows
nothing of events or of values that JSON cannot hold (see `values`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]

_text = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode
_canonical = json.JSONEncoder(
    ensure_ascii=False,
    check_circular=False,
    allow_nan=False,
    separators=(",", ":"),
    sort_keys=True,
).encode


def encode_std(value: Any) -> bytes:
    return _text(value).encode()


def decode_std(line: bytes) -> Any:
    return json.loads(line)


def canonical(value: Any) -> bytes:
    """Sorted keys, one spelling a number: the form that fingerprints are taken of."""
    return _canonical(value).encode("utf-8", "surrogatepass")


def msgspec_encoder() -> Encode | None:
    """msgspec's encoder if the host can import it. Importing it costs some 30 ms: see `fastest`."""
    try:
        import msgspec.json
    except ImportError:
        return None
    encode: Encode = msgspec.json.Encoder().encode
    return encode


def msgspec_decoder() -> Decode | None:
    try:
        import msgspec.json
    except ImportError:
        return None
    decode: Decode = msgspec.json.Decoder().decode
    return decode


def fastest(*, may_import: bool) -> Encode:
    """The quickest encoder at hand; `may_import=False` takes msgspec only if it is loaded already.

    A program that records a handful of events must not pay for an import that it never asked for.
    """
    if not may_import and "msgspec" not in sys.modules:
        return encode_std
    return msgspec_encoder() or encode_std


def fastest_decode() -> Decode:
    return msgspec_decoder() or decode_std


def could_be_faster(encode: Encode) -> bool:
    """Whether this host has msgspec and `encode` does not use it yet."""
    return encode is encode_std and ("msgspec" in sys.modules or find_spec("msgspec") is not None)
