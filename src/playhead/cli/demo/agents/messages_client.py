"""The small part of the Anthropic SDK that the refund agent uses, written with the standard library only.

Used if the SDK is not installed: same names, same requests, same streams.
"""

import json
import os
import urllib.request
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any


class Anthropic:
    """A client; it supports only `client.messages.stream(...)`."""

    def __init__(self, max_retries: int = 0) -> None:
        if max_retries:
            raise ValueError("this client does not retry")
        self.messages = self
        self._url = os.environ["ANTHROPIC_BASE_URL"].rstrip("/") + "/v1/messages"
        self._key = os.environ["ANTHROPIC_API_KEY"]

    def stream(self, **body: Any) -> "Stream":
        headers = {
            "content-type": "application/json",
            "anthropic-version": "2023-06-01",
            "x-api-key": self._key,
        }
        raw = json.dumps({**body, "stream": True}).encode()
        return Stream(urllib.request.Request(self._url, raw, headers, method="POST"))


class Stream:
    """Server-sent events, assembled into a message while its text is yielded."""

    def __init__(self, request: urllib.request.Request) -> None:
        self._request = request
        self._blocks: list[dict[str, Any]] = []

    def __enter__(self) -> "Stream":  # noqa: PYI034  read by 3.10 too
        self._answer = urllib.request.urlopen(self._request, timeout=60)
        return self

    def __exit__(self, *raised: object) -> None:
        self._answer.close()

    @property
    def text_stream(self) -> Iterator[str]:
        """Yield the text as it arrives; everything is kept for the final message."""
        for line in self._answer:
            if not line.startswith(b"data: "):
                continue
            event = json.loads(line[6:])
            if event["type"] == "content_block_start":
                self._blocks.append({**event["content_block"], "partial": ""})
            elif event["type"] == "content_block_delta":
                delta, block = event["delta"], self._blocks[-1]
                block["partial"] += delta.get("text", "") + delta.get("partial_json", "")
                if delta.get("text"):
                    yield delta["text"]

    def get_final_message(self) -> SimpleNamespace:
        return SimpleNamespace(content=[Block(**_whole(block)) for block in self._blocks])


class Block(SimpleNamespace):
    """A part of a message: text, or a request for a tool."""

    def model_dump(self) -> dict[str, Any]:
        return dict(vars(self))


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    partial = block.pop("partial")
    if block["type"] == "tool_use":
        return {**block, "input": json.loads(partial or "{}")}
    return {**block, "text": partial}
