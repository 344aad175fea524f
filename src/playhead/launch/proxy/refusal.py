"""What a client of the proxy hears where there is no answer for it. Knows how agents read errors.

Status 400 and `x-should-retry: false`: whatever else an agent hears it asks again, for minutes.
"""

from __future__ import annotations

import json


def diverged(url: str, message: str) -> bytes:
    """The replay has no answer to this: in words, in the shape of the API that was asked."""
    error = {"type": "invalid_request_error", "message": message, "code": "playhead_divergence"}
    body: dict[str, object] = {"type": "error", "error": error}
    if "/v1beta" in url or ":generateContent" in url or ":streamGenerateContent" in url:
        body = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    return _answer("400 Bad Request", json.dumps(body))


def bad_request(why: str) -> bytes:
    return _answer("400 Bad Request", json.dumps({"error": {"message": f"playhead: {why}"}}))


def nothing(method: str, *, is_llm: bool) -> bytes:
    """An empty answer, for side traffic that the tape does not know."""
    if is_llm:
        return diverged("", "This side request is not on the tape; nothing depends on it.")
    if method == "HEAD":
        return b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    return _answer("200 OK", "{}")


def _answer(status: str, body: str) -> bytes:
    raw = body.encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-should-retry: false\r\n"
        f"content-length: {len(raw)}\r\n"
    )
    close = "" if status.startswith("200") else "connection: close\r\n"
    return f"{head}{close}\r\n".encode() + raw
