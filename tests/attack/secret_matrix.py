"""Send a sample of every redaction rule through every channel in every form, and search all that Playhead wrote.

The search decodes what it finds (base64, JSON, percent-encoding, compressed bodies), so a secret does not hide in an
encoding of ours.
"""

import base64
import binascii
import gzip
import html
import http.server
import itertools
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import urllib.parse
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import brotli
from backports import zstd
from tests.unit.redact import test_kinds

from playhead.tape.reader import Tape

PROGRAM = Path(__file__).with_name("secret_program.py")
ENCODE = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress}  # fmt: skip
# A secret of a rule that fits by a name before it is not found in base64 and other forms that hide the name's value:
# those are checked with a sample of every rule that has a shape.
FORMS = ("plain", "split", "base64", "json", "json in json", "unicode escapes", *ENCODE)


class Matrix(NamedTuple):
    """The result: how many cells were tried, and what was found in clear, and where."""

    cells: int
    rules: int
    leaks: list[str]
    bytes: int


def payloads(rules: slice = slice(None)) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Every rule in every form, and the secret of each rule."""
    made, secrets = [], {}
    for number, (name, text, secret) in enumerate(test_kinds.SECRETS[rules]):
        secrets[name] = secret
        plain = text.replace("{}", secret)
        made += [_payload(f"{number}-{at}", form, plain) for at, form in enumerate(FORMS)]
    return made, secrets


def _payload(number: str, form: str, plain: str) -> dict[str, Any]:
    text = plain
    if form == "base64":
        text = json.dumps({"data": base64.b64encode(plain.encode()).decode()})
    elif form == "json":
        text = json.dumps({"text": plain})
    elif form == "json in json":
        text = json.dumps({"arguments": json.dumps({"text": plain})})
    elif form == "unicode escapes":
        text = '{"text": "' + "".join(f"\\u{ord(one):04x}" for one in plain) + '"}'
    raw = ENCODE[form](text.encode()) if form in ENCODE else text.encode()
    return {"id": number, "form": form, "text": text, "raw": base64.b64encode(raw).decode()}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bodies: dict[str, dict[str, Any]]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        if "chunked" in self.headers.get("transfer-encoding", ""):
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
            self.rfile.readline()
        else:
            self.rfile.read(int(self.headers.get("content-length") or 0))
        self._say(b"ok")

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].rsplit("/", 2)
        one = self.bodies.get(path[-1])
        if one is None:
            return self._say(b"ok")
        if path[-2] == "head":
            return self._say(b"ok", ("x-echo", one["text"]))
        raw = base64.b64decode(one["raw"])
        self.send_response(200)
        if one["form"] in ENCODE:
            self.send_header("content-encoding", one["form"])
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        third = len(raw) // 3
        middle = [third, 2 * third] if one["form"] != "plain" else []
        for start, end in itertools.pairwise([0, *middle, len(raw)]):
            self.wfile.write(b"%x\r\n%s\r\n" % (end - start, raw[start:end]))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _say(self, raw: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(raw)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def run(folder: Path, rules: slice = slice(None), *, most_s: float = 1200) -> Matrix:
    """Record the program and a curl through the proxy, export both runs in every form, and search."""
    made, secrets = payloads(rules)
    # A class for each run: two parts of the matrix run at the same time.
    handler = type("_Bodies", (_Handler,), {"bodies": {one["id"]: one for one in made}})
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    (folder / "home").mkdir()
    work = folder / "work"
    work.mkdir()
    # Outside of the workspace, whose files are on the tape as they are.
    (folder / "payloads.json").write_text(json.dumps(made))
    env = {**os.environ, "PLAYHEAD_HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "cache")}  # fmt: skip
    env |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}", "OPENAI_API_KEY": "none"}

    def playhead(*words: str) -> bytes:
        done = subprocess.run(
            [sys.executable, "-m", "playhead", *words], cwd=work, env=env, stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=most_s,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"playhead {words[0]}: {done.stderr.decode()[-800:]}")
        return done.stdout + done.stderr

    argv = [sys.executable, str(PROGRAM), str(port), str(folder / "payloads.json")]
    playhead("record", "--", *argv)
    cells = sum(json.loads((work / "cells.json").read_text()).values())
    # curl is no Python program, so it goes through the proxy.
    script = folder / "script.sh"
    lines = [f'"$OPENAI_BASE_URL/{one["id"]}"' for one in made]
    script.write_text("curl -sS -o /dev/null " + " -o /dev/null ".join(lines) + "\n")
    playhead("record", "--", "sh", str(script))
    cells += len(made)
    server.shutdown()
    server.server_close()
    shown = [playhead("list", "--all"), playhead("search", "key", "--all")]
    for one in ("last", "last~1"):
        shown += [playhead("show", one, "--full", "--output"), playhead("events", one)]
        for option in ("html", "story", "tape", "bundle"):
            suffix = {"bundle": ".playhead.zip", "tape": ".tape.jsonl"}.get(option, f".{option}")
            playhead("export", one, f"--{option}", str(folder / f"{one}{suffix}"))
        playhead("export", one, "--fixtures", str(folder / f"fixtures-{one}"))
    leaks, size = _search(folder, shown, secrets)
    return Matrix(cells, len(secrets), leaks, size)


def _search(folder: Path, shown: list[bytes], secrets: dict[str, str]) -> tuple[list[str], int]:
    places: list[tuple[str, bytes]] = [("on the terminal", one) for one in shown]
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in ("payloads.json", "script.sh", "cells.json"):
            places += [(str(path.relative_to(folder)), one) for one in _contents(path)]
    for one in (folder / "home" / "runs").iterdir():
        places.append((f"streams of {one.name}", _streams(one)))
    # One search for each secret: a pattern with all of them is a hundred times slower.
    needles = {secret.encode(): name for name, secret in secrets.items()}
    leaks: list[str] = []
    size = 0
    for where, raw in places:
        for how, text in _decoded(raw):
            size += len(text)
            for needle, name in needles.items():
                at = text.find(needle)
                if at >= 0:
                    around = text[max(0, at - 60) : at + len(needle) + 20]
                    leaks.append(f"{name}: {where} ({how}, {text.count(needle)}): {around!r}")
    return leaks, size


def _contents(path: Path) -> Iterator[bytes]:
    raw = path.read_bytes()
    yield raw
    if path.suffix == ".zst":
        yield zstd.decompress(raw)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                inner = archive.read(name)
                yield inner
                if name.endswith(".zst"):
                    yield zstd.decompress(inner)
    elif path.suffix == ".db":
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as rows:
            for (table,) in rows.execute("select name from sqlite_master where type='table'"):
                try:
                    yield repr(rows.execute(f'select * from "{table}"').fetchall()).encode()
                except sqlite3.DatabaseError:
                    continue


def _streams(run: Path) -> bytes:
    """The chunks of each stream joined, so that a secret in two of them is found; bodies are decompressed."""
    joined: dict[tuple[Any, Any], list[bytes]] = {}
    tape = Tape(run)
    for event in tape.events():
        data = tape.whole(event).data
        if event.kind in ("chunk", "output") and isinstance(data, dict):
            key = (event.segment, data.get("call") or event.kind, data.get("stream"))
            joined.setdefault(key, []).append(_bytes_of(data))
    out = []
    for pieces in joined.values():
        raw = b"".join(pieces)
        out.append(raw)
        out += _decompressed(raw)
    return b"\n\n".join(out)


def _bytes_of(data: dict[str, Any]) -> bytes:
    for name in ("b64", "$bytes"):
        if isinstance(data.get(name), str):
            return base64.b64decode(data[name])
    value = data.get("text", data.get("value", data.get("data")))
    return _bytes_of(value) if isinstance(value, dict) else str(value).encode("utf-8", "replace")


def _decompressed(raw: bytes) -> Iterator[bytes]:
    for decode in (gzip.decompress, zlib.decompress, brotli.decompress, zstd.decompress):
        try:
            yield decode(raw)
        except Exception:  # noqa: BLE001  not in this encoding
            continue


_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{20,}={0,2}")


def _decoded(raw: bytes) -> Iterator[tuple[str, bytes]]:
    yield "as it is", raw
    text = raw.decode("utf-8", "replace")
    for _ in range(3):
        text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda hit: chr(int(hit[1], 16)), text)
        text = text.replace('\\"', '"').replace("\\\\", "\\")
    plain = text.encode("utf-8", "replace")
    yield "JSON", plain
    if b"%" in plain:
        yield "percent-encoded", urllib.parse.unquote_to_bytes(plain)
    if b"&" in plain:
        yield "HTML", html.unescape(text).encode("utf-8", "replace")
    inner = []
    for hit in _BASE64.finditer(plain):
        word = hit.group().rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
        try:
            piece = base64.b64decode(word + b"=" * (-len(word) % 4))
        except (binascii.Error, ValueError):
            continue
        inner.append(piece)
        # Words of a text are no compressed bodies.
        if not piece.isascii():
            inner += _decompressed(piece)
    if inner:
        yield "base64", b"\n".join(inner)
