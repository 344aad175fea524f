"""The base class of LLM providers: one subclass per API holds everything Playhead knows about that API.

Knows the questions that recording, replay, the story and the scripted server have about an API. Does not
know any API: each lives in a folder or module of its own and has one row in `providers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from playhead.llm.http_headers import Headers, header
from playhead.llm.llm_exchange import LlmExchange, LlmRequest, LlmResponse

if TYPE_CHECKING:
    from playhead.llm.reply_encoder import ReplyEncoder

Json = dict[str, Any]


class Provider:
    """One LLM API. `api`, `endpoints` and the two decoders are required, the rest has defaults.

    Instances hold no state: recording threads, replays and views share one.
    """

    # The name of the API on tapes. It never changes: old tapes are decoded by it.
    api: str = ""
    # The id of the company in genai-prices whose price list is tried first.
    price_id: str | None = None
    # The last segment of the path, or the verb after its colon, and whether that address asks for a
    # stream (None: the body decides). Requests to other paths are dismissed without looking at the body.
    endpoints: Mapping[str, bool | None] = {}
    # A response without any of these words asks for no tool call and is not decoded to find one.
    tool_words: tuple[bytes, ...] = ()
    # The field of a request body that holds the conversation.
    messages_field = "messages"

    # --- recognise -----------------------------------------------------------------------------

    def matches(self, path: str, headers: Headers, body: bytes | None) -> bool:
        """Return whether a POST to one of `endpoints` is a call of this API. The body is None while streaming."""
        return has_keys(body, f'"{self.messages_field}"'.encode())

    def matches_websocket(self, path: str) -> bool:
        """Return whether a WebSocket that is opened at this path uses this API."""
        return False

    # --- decode --------------------------------------------------------------------------------

    def decode_request(self, body: bytes) -> LlmRequest:
        raise NotImplementedError

    def decode_response(
        self, status: int, content_type: str, body: bytes, *, only: tuple[bytes, ...] = ()
    ) -> LlmResponse:
        """Decode as much as arrived. `only`: events of a stream without these words may be skipped."""
        raise NotImplementedError

    def decode_websocket(
        self, messages: Iterable[tuple[str, bytes | str]]
    ) -> tuple[LlmExchange, ...]:
        """Decode the exchanges on one socket from ("sent" | "received", message) pairs."""
        return ()

    def streamed_text(self, event: Json) -> Iterator[tuple[str, bool]]:
        """Yield the text that one event of a stream adds, and whether it is thinking."""
        yield from ()

    # --- rewrite a request before it is sent (replay with another prompt or a shorter history) -------

    def set_system(self, body: Json, text: str) -> None:
        """Replace the system prompt in a request body."""
        body["system"] = text

    def starts_turn(self, message: Json) -> bool:
        """Return whether a conversation may be cut before this message: it is the user's own, not a tool result."""
        return message.get("role") == "user"

    # --- edit a taped answer (fork) ------------------------------------------------------------------

    def replace_text(self, body: Json, text: str) -> Json | None:
        """Return a response body with this text in place of its own. None: not supported."""
        return None

    def replace_event_text(self, event: Json, text: str, *, done: bool) -> tuple[Json, bool] | None:
        """Return an event of a stream with the new text, and whether it carries that text.

        `done`: an earlier event carries it already. None: drop this event.
        """
        return event, False

    # --- error answers (injected faults, scripted failures) ------------------------------------------

    def error_body(
        self,
        status: int,
        message: str | None = None,
        *,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> Json:
        """Return the body of an error answer. This default is OpenAI's form, which most servers copy."""
        kind, code, usual = _ERRORS.get(status, _ERRORS[500])
        error = {"message": message or usual, "type": kind, "param": None, "code": code}
        return {"error": error}

    # --- scripted server (never loaded inside an agent) ----------------------------------------------

    def reply_encoder(self) -> ReplyEncoder | None:
        """Return a new encoder for the scripted server. None: the scripted server does not serve this API."""
        return None


_ERRORS: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "The request was malformed."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", "forbidden", "You are not allowed to use this resource."),
    404: ("invalid_request_error", "not_found", "The requested resource was not found."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    500: ("server_error", "server_error", "The server had an error processing your request."),
    503: ("server_error", "server_overloaded", "The server is currently overloaded."),
}


def has_keys(body: bytes | None, *keys: bytes) -> bool:
    """Return whether a JSON object has these quoted keys somewhere. An unknown body counts as yes."""
    if body is None:
        return True
    return body[:64].lstrip()[:1] == b"{" and all(key in body for key in keys)


def has_header(headers: Headers, name: str) -> bool:
    return header(headers, name) is not None


def replace_first_text(
    items: list[Any], is_text: Callable[[Json], bool], replacement: Json
) -> list[Any]:
    """Put `replacement` in place of the first text item and drop the others; without any, put it first."""
    texts = [index for index, one in enumerate(items) if isinstance(one, dict) and is_text(one)]
    at = texts[0] if texts else 0
    old = items[at] if texts else {}
    kept = [None if index in texts else one for index, one in enumerate(items)]
    kept.insert(at, {**old, **replacement})
    return [one for one in kept if one is not None]


def text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""
