"""What the server says: JSON, and problems with a reason. Knows HTTP's words; not what is asked."""

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
    """An answer that is not what was asked for. `reason`: what is wrong; `advice`: what to do."""

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
    """What the library and the tapes complain of, in HTTP's terms."""
    if isinstance(error, RunNotFound):
        return Problem(404, str(error), "GET /api/recordings lists the runs.")
    if isinstance(error, UsageError):
        return Problem(400, str(error))
    if isinstance(error, TapeError):
        # The request was fine, and so is the server: the thing itself is not in that state.
        return Problem(409, str(error))
    if isinstance(error, StoreError):
        return Problem(409, str(error), "See that the server may read and write the store.")
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
        # Half a surrogate pair, an endless number: tapes hold what programs said, and JSON as it is
        # written on a wire cannot.
        text = json.dumps(value, default=str)
        return json.dumps(json.loads(text, parse_constant=lambda _: None)).encode()
