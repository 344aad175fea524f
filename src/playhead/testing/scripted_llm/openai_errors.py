"""The errors and headers that both OpenAI wires share. Knows no request and no socket."""

from __future__ import annotations

from playhead.testing.scripted_llm.llm_script import Failure
from playhead.testing.scripted_llm.mint import Mint
from playhead.testing.scripted_llm.wire import Json

DEFAULT_MODEL = "gpt-6.1-sol"
_ERRORS: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "The request was malformed."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", "forbidden", "You are not allowed to use this resource."),
    404: ("invalid_request_error", "not_found", "The requested resource was not found."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    500: ("server_error", "server_error", "The server had an error processing your request."),
    503: ("server_error", "server_overloaded", "The server is currently overloaded."),
}


def error_object(failure: Failure) -> Json:
    kind, code, message = _ERRORS.get(failure.status, _ERRORS[500])
    return {"message": failure.message or message, "type": kind, "param": None, "code": code}


def answer_headers(mint: Mint) -> list[tuple[str, str]]:
    return [
        ("x-request-id", f"req_{mint.hex(32)}"),
        ("openai-organization", f"org-{mint.alnum(24)}"),
        ("openai-version", "2020-10-01"),
        ("openai-processing-ms", "42"),
        ("x-ratelimit-limit-requests", "10000"),
        ("x-ratelimit-remaining-requests", "9999"),
    ]
