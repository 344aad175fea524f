"""Encode JSON to bytes and decode it: with msgspec where the host has it, with the standard library elsewhere.

Both write the same bytes at different speeds: nothing that is written or hashed may depend on which one ran. Does not
know events, or values that JSON cannot hold (see `values`).
"""

from __future__ import annotations

import sys

from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import json
    from collections.abc import Callable
    from importlib import util
    from typing import Any

    Encode = Callable[[Any], bytes]
    Decode = Callable[[bytes], Any]
else:
    json = Later("json")
    util = Later("importlib.util")

# `json` itself needs `re` and five patterns, which cost 6 ms at every start; the C functions do not need them.
try:
    import _json

    _c: Any = _json
except ImportError:  # not CPython
    _c = None


def _encoder(
    quoted: Callable[[str], str], comma: str, colon: str, *, sort_keys: bool = False
) -> Callable[[Any], str]:
    """Return `json.JSONEncoder(…).encode`, made once instead of for each value."""
    if _c is None:
        return json.JSONEncoder(
            ensure_ascii=quoted is quote,
            check_circular=False,
            allow_nan=False,
            separators=(comma, colon),
            sort_keys=sort_keys,
        ).encode
    spell = _c.make_encoder(None, _refuse, quoted, None, colon, comma, sort_keys, False, False)
    return lambda value: "".join(spell(value, 0))


def _refuse(value: object) -> None:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


# A text as JSON: escaped to ASCII as `json.dumps` does, and unescaped.
quote: Callable[[str], str] = json.dumps if _c is None else _c.encode_basestring_ascii
quote_as_is: Callable[[str], str] = (
    json.JSONEncoder(ensure_ascii=False).encode if _c is None else _c.encode_basestring
)

_text = _encoder(quote_as_is, ",", ":")
_canonical = _encoder(quote_as_is, ",", ":", sort_keys=True)
dumps = _encoder(quote, ", ", ": ")


class _AsUsual:
    """The settings that make the C scanner parse JSON as `json.loads` does by default."""

    strict = True
    object_hook = object_pairs_hook = parse_constant = None
    parse_float, parse_int = float, int


_scan: Callable[[str, int], tuple[Any, int]] | None = (
    None if _c is None else _c.make_scanner(_AsUsual)
)


def loads(text: str) -> Any:
    """Decode JSON: the inverse of `dumps`. Text in another form than `dumps` writes is left to `json`."""
    value, end = None, -1
    if _scan is not None:
        try:
            value, end = _scan(text, 0)
        except StopIteration:
            end = -1  # the JSON is cut off: `json` reports where
    return value if end == len(text) else json.loads(text)


def encode_std(value: Any) -> bytes:
    return _text(value).encode()


def decode_std(line: bytes) -> Any:
    return json.loads(line)


def canonical(value: Any) -> bytes:
    """Encode with sorted keys and one form per number: fingerprints are taken of this form."""
    return _canonical(value).encode("utf-8", "surrogatepass")


def msgspec_encoder() -> Encode | None:
    """Return msgspec's encoder if the host can import it. Importing it costs some 30 ms: see `fastest`."""
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
    """Return the fastest available encoder; `may_import=False` uses msgspec only if it is loaded already.

    A program that records a handful of events must not pay for an import that it did not request.
    """
    if not may_import and "msgspec" not in sys.modules:
        return encode_std
    return msgspec_encoder() or encode_std


def fastest_decode() -> Decode:
    return msgspec_decoder() or decode_std


def could_be_faster(encode: Encode) -> bool:
    """Return whether this host has msgspec and `encode` does not use it yet."""
    return encode is encode_std and (
        "msgspec" in sys.modules or util.find_spec("msgspec") is not None
    )
