"""The least code that keeps a request and its answer: two JSON lines, one write(2) each.

The floor that a recorder of HTTP is measured against. No lock, no lanes, no redaction, no checksum, no
place in the code, no streams: an answer is written when it is whole.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import httpx2
import msgspec.json
import requests

from playhead import clock


class Thin:
    """Around each client's own way of performing one request."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder / "thin.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._encode = msgspec.json.Encoder().encode
        self._seq = 0

    def asked(self, method: str, url: str, headers: Any, body: bytes | None) -> int:
        text = None if body is None else body.decode()
        asked = {"method": method, "url": url, "headers": headers, "body": text}
        return self._write("call", asked)

    def answered(self, call: int, status: int, headers: Any, body: bytes) -> None:
        answer = {"call": call, "status": status, "headers": headers, "body": body.decode()}
        self._write("outcome", answer)

    def _write(self, kind: str, data: dict[str, Any]) -> int:
        self._seq += 1
        wall, mono = clock.wall_ns(), clock.mono_ns()
        event = {"seq": self._seq, "kind": kind, "wall": wall, "mono": mono, "data": data}
        os.write(self._fd, self._encode(event) + b"\n")
        return self._seq

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with contextlib.ExitStack() as hooks:
            for module in (httpx, httpx2):
                hooks.enter_context(
                    _replaced(module.HTTPTransport, "handle_request", self._httpx(module))
                )
            hooks.enter_context(_replaced(requests.adapters.HTTPAdapter, "send", self._requests()))
            hooks.enter_context(_replaced(aiohttp.ClientSession, "_request", self._aiohttp()))
            yield

    def _httpx(self, module: Any) -> Any:
        thin, original = self, module.HTTPTransport.handle_request

        class Heard(module.SyncByteStream):  # type: ignore[misc,name-defined]  # the library's own
            def __init__(self, stream: Any, call: int, response: Any) -> None:
                self.stream, self.call, self.response = stream, call, response

            def __iter__(self) -> Iterator[bytes]:
                pieces = []
                for piece in self.stream:
                    pieces.append(piece)
                    yield piece
                kept = _decoded(self.response.headers.raw)
                thin.answered(self.call, self.response.status_code, kept, b"".join(pieces))

            def close(self) -> None:
                self.stream.close()

        def handle_request(transport: Any, request: Any) -> Any:
            kept = _decoded(request.headers.raw)
            body = request.__dict__.get("_content")
            call = thin.asked(request.method, str(request.url), kept, body)
            response = original(transport, request)
            response.stream = Heard(response.stream, call, response)
            return response

        return handle_request

    def _requests(self) -> Any:
        thin, original = self, requests.adapters.HTTPAdapter.send

        def send(adapter: Any, request: Any, stream: bool = False, **options: Any) -> Any:  # noqa: FBT001, FBT002  (its own)
            call = thin.asked(request.method, request.url, dict(request.headers), request.body)
            response = original(adapter, request, stream=stream, **options)
            if not stream:
                thin.answered(call, response.status_code, dict(response.headers), response.content)
            return response

        return send

    def _aiohttp(self) -> Any:
        thin, original = self, aiohttp.ClientSession._request  # noqa: SLF001  (every verb goes there)

        async def _request(session: Any, method: str, url: Any, **options: Any) -> Any:
            body = msgspec.json.encode(options["json"]) if "json" in options else None
            call = thin.asked(method, str(url), dict(options.get("headers") or {}), body)
            response = await original(session, method, url, **options)
            if response.content_length is not None:
                headers = {str(name): value for name, value in response.headers.items()}
                thin.answered(call, response.status, headers, await response.read())
            return response

        return _request


def _decoded(headers: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


@contextlib.contextmanager
def _replaced(owner: type, name: str, value: Any) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)
