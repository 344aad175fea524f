"""Find secrets in multipart forms: values of fields whose name is that of a secret. Does not know other texts."""

from __future__ import annotations

from playhead.host.later import Later
from playhead.redact import shapes
from playhead.redact.names import is_secret_name, may_hold

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
else:
    re = Later("re")


def secret_fields(raw: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind of each secret value."""
    for hit in _field().finditer(raw):
        name, value = (one.decode("utf-8", "replace") for one in hit.groups())
        if is_secret_name(name) and may_hold(name, value):
            yield (*hit.span(2), "field")


def open_field(tail: bytes) -> int | None:
    """Return the start of a field at the end of a text, if it may be a secret whose value has not ended yet."""
    start = tail.rfind(b"form-data; name=")
    hit = _open_field().match(tail, start) if start >= 0 else None
    if hit is None:
        return None
    # A name that is not complete may become that of a secret.
    is_open = not hit.group(2) or is_secret_name(hit.group(1).decode("utf-8", "replace"))
    return start if is_open else None


@shapes.cache
def _field() -> re.Pattern[bytes]:
    """Return the pattern of a field of a multipart form, with its name and value: on the wire, and inside JSON, which
    may be inside JSON again.
    """
    quote, line = r"\\{0,15}\"", r"(?:\r?\n|\\{1,15}r\\{1,15}n|\\{1,15}n)"
    return re.compile(
        rf"form-data; name={quote}([^\"\\\r\n]{{1,128}}){quote}{line}"
        rf"(?:[A-Za-z-]{{1,64}}:[^\r\n\\]{{0,256}}{line}){{0,4}}{line}"
        rf"([^\r\n\\]{{4,4096}}){line}--".encode()
    )


@shapes.cache
def _open_field() -> re.Pattern[bytes]:
    """Return the pattern of a field at the end of a text whose value may not have ended yet: its name, and the quote
    after the name.
    """
    return re.compile(rb"form-data; name=\"([^\"\r\n]{0,128})(\"?)(?:(?!\r\n--)[\s\S]){0,5000}\Z")
