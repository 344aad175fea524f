"""JSON responses, and errors with a reason and advice. Knows HTTP; does not know the operations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from playhead.encoding.jsonbytes import fastest
from playhead.errors import (
    PlayheadError,
    RunNotFound,
    StoreError,
    TapeError,
    UsageError,
)

_encode = fastest(may_import=True)


class Problem(Exception):
    """An error response. `reason`: what is wrong; `advice`: what to do next."""

    def __init__(
        self,
        status: int,
        reason: str,
        advice: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.advice = advice
        self.headers = dict(headers or {})

    def response(self) -> Response:
        error = {"reason": self.reason, "next": self.advice or None}
        return json_response({"error": error}, status=self.status, headers=self.headers)


def problem_of(error: PlayheadError) -> Problem:
    """Translate an error of the library or a tape into an HTTP error."""
    if isinstance(error, RunNotFound):
        return Problem(404, str(error), "GET /api/recordings lists the runs.")
    if isinstance(error, UsageError):
        return Problem(400, str(error))
    if isinstance(error, TapeError):
        # Request and server are fine: the tape or the store is not in a state for the operation.
        return Problem(409, str(error))
    if isinstance(error, StoreError):
        return Problem(409, str(error), "Check that the server may read and write the store.")
    return Problem(409, str(error))


def json_response(
    value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return raw_json(json_bytes(value), status=status, headers=headers)


def raw_json(
    body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(body, status, dict(headers or {}), media_type="application/json")


def json_bytes(value: Any) -> bytes:
    try:
        return _encode(value)
    except (UnicodeEncodeError, ValueError, TypeError):
        # Tapes may hold half a surrogate pair or an infinite number; strict JSON cannot.
        text = json.dumps(value, default=str)
        return json.dumps(json.loads(text, parse_constant=lambda _: None)).encode()
