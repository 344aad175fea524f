"""Read the fields of multipart and urlencoded form bodies; the random multipart boundary does not count. Pure.

A form is a dict of names and values. The value of a field is its text; a file is its name, type, size and hash; a name
that occurs twice has a list of values. Knows the two encodings of forms; does not know HTTP clients.
"""

from __future__ import annotations

from binascii import a2b_base64

from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    import re
    from collections.abc import Iterable
    from typing import Any
    from urllib import parse as addresses

    # A field: its name and its value.
    Field = tuple[str, Any]
else:
    hashlib = Later("hashlib")
    re = Later("re")
    addresses = Later("urllib.parse")

_MULTIPART = "multipart/form-data"
_URLENCODED = "application/x-www-form-urlencoded"
_BOUNDARY = r';\s*boundary=(?:"([^"]{1,200})"|([^\s;]{1,200}))'
_NAME = r';\s*%s="((?:[^"\\]|\\.)*)"'


def file_value(filename: str | None, kind: str | None, content: bytes) -> dict[str, Any]:
    """Return the value of a field that is a file."""
    return hashed_file(filename, kind, len(content), hashlib.sha256(content).hexdigest())


def hashed_file(filename: str | None, kind: str | None, size: int, digest: str) -> dict[str, Any]:
    value = {"filename": filename, "type": kind, "size": size, "sha256": spelled(digest)}
    return {name: item for name, item in value.items() if item is not None}


def spelled(digest: str) -> str:
    """Return a hash in capitals: hexadecimal digits in small letters would be taken for ids that differ in
    every run.
    """
    return digest.upper()


def data_value(content: bytes) -> Any:
    """Return the value of a field that is not a file: its text, or its hash if it is not text."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return file_value(None, None, content)


def form_of(fields: Iterable[Field]) -> dict[str, Any]:
    """Return the fields by name."""
    form: dict[str, Any] = {}
    repeated: set[str] = set()
    for name, value in fields:
        if name not in form:
            form[name] = value
        elif name in repeated:
            form[name].append(value)
        else:
            repeated.add(name)
            form[name] = [form[name], value]
    return form


def with_form(request: Any) -> Any:
    """Return a request whose body is a form with the form's fields in place of the body, and without the boundary. Any
    other request is returned unchanged.
    """
    if type(request) is not dict or type(request.get("headers")) is not dict:
        return request
    headers, body = request["headers"], request.get("body")
    kind = headers.get("content-type")
    if type(kind) is not str or type(body) is not dict:
        return request
    name = kind.partition(";")[0].strip().lower()
    if name not in (_MULTIPART, _URLENCODED):
        return request
    if "streamed" in body:
        form: dict[str, Any] | None = body.get("form")
    else:
        form = _read(kind, name, body)
    if form is None:
        return request
    return {**request, "headers": {**headers, "content-type": name}, "body": {"form": form}}


def _read(kind: str, name: str, body: dict[str, Any]) -> dict[str, Any] | None:
    text, encoded = body.get("text"), body.get("b64")
    if type(text) is str:
        raw = text.encode("utf-8", "surrogatepass")
    elif type(encoded) is str:
        try:
            raw = a2b_base64(encoded)
        except ValueError:
            return None
    else:
        return None
    if name == _URLENCODED:
        return form_of(addresses.parse_qsl(raw.decode("latin-1"), keep_blank_values=True))
    hit = re.search(_BOUNDARY, kind, re.IGNORECASE)
    return None if hit is None else _parts(raw, (hit.group(1) or hit.group(2)).encode())


def _parts(raw: bytes, boundary: bytes) -> dict[str, Any] | None:
    """Return the form in a multipart body; None: the body is not one."""
    pieces = (b"\r\n" + raw).split(b"\r\n--" + boundary)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        return None
    fields: list[Field] = []
    for piece in pieces[1:-1]:
        head, _, content = piece.partition(b"\r\n\r\n")
        headers = _headers(head)
        disposition = headers.get("content-disposition", "")
        name, filename = parameter(disposition, "name"), parameter(disposition, "filename")
        if name is None:
            return None
        kind = headers.get("content-type")
        is_file = filename is not None
        fields.append(
            (name, file_value(filename, kind, content) if is_file else data_value(content))
        )
    return form_of(fields)


def _headers(head: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in head.decode("utf-8", "replace").split("\r\n"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs if name}


def parameter(header: str, name: str) -> str | None:
    """Return a parameter of a header: `name` in `form-data; name="prompt"`."""
    hit = re.search(_NAME % name, header, re.IGNORECASE)
    return None if hit is None else str(hit.group(1))
