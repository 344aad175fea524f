"""Decode errors from the error bodies of all providers."""

from __future__ import annotations

from typing import Any

from playhead.llm.json_fields import count, mappings, string
from playhead.llm.llm_exchange import LlmError

_SHOWN = 500


def error_of(value: Any, status: int | None) -> LlmError | None:
    """Return the error that a JSON value reports, or None.

    Anthropic ``{"type": "error", "error": {"type", "message"}}``, OpenAI ``{"error": {"message", "type", "code"}}``
    or flat ``{"type": "error", "code", "message"}``, Google ``{"error": {"code", "message", "status", "details"}}``,
    Bedrock ``{"message"}``, and gateways that send ``{"error": "text"}`` or ``{"detail": "text"}``.
    """
    if not isinstance(value, dict):
        return None
    inner = value.get("error")
    if isinstance(inner, str) and inner:
        return LlmError(status=_failing(status), type=None, message=inner)
    if isinstance(inner, dict) and inner:
        return _of_mapping(inner, _failing(status) or count(value.get("status")))
    if value.get("type") == "error" or (status is not None and status >= 400):
        return _of_mapping(value, status)
    return None


def error_of_text(text: str, status: int) -> LlmError:
    """Return the error of a failed answer that is not JSON: a proxy's page, a bare sentence."""
    shown = " ".join(text.split())[:_SHOWN]
    return LlmError(status=status, type=None, message=shown or None)


def _of_mapping(error: dict[str, Any], status: int | None) -> LlmError:
    kind = string(error.get("type"))
    code = error.get("code")
    if kind in (None, "error"):
        kind = string(error.get("status")) or string(code)
    return LlmError(
        # An error inside a stream comes after a 200: only its own code is its status.
        status=_failing(status) or _failing(count(code)),
        type=kind,
        message=string(error.get("message")) or string(error.get("detail")),
        code=str(code) if isinstance(code, (str, int)) else None,
        retry_after=_retry_delay(error),
    )


def _failing(status: int | None) -> int | None:
    return status if status is not None and 400 <= status < 600 else None


def _retry_delay(error: dict[str, Any]) -> float | None:
    """Google's RetryInfo: ``{"@type": "….RetryInfo", "retryDelay": "17.5s"}``."""
    for detail in mappings(error.get("details")):
        delay = string(detail.get("retryDelay"))
        if delay is not None and delay.endswith("s"):
            try:
                return max(0.0, float(delay[:-1]))
            except ValueError:
                return None
    return None
