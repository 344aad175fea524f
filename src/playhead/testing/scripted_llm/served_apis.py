"""The APIs that one scripted server serves: which encoder answers which path, keys, variables, models.

Knows the encoders of all providers. Does not know sockets or the script.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from playhead.llm.llm_script import ReceivedRequest
from playhead.llm.openai.encode_responses import OpenAiResponsesEncoder
from playhead.llm.providers import all_providers
from playhead.llm.reply_encoder import Endpoint, IdSource, Json, ReplyEncoder

_LOOPBACK = "127.0.0.1,localhost"


class ServedApis:
    """One encoder per provider. Paths are compared by their ends, so that any base URL works."""

    def __init__(self) -> None:
        made = [provider.reply_encoder() for provider in all_providers()]
        self.encoders: list[ReplyEncoder] = [one for one in made if one is not None]
        # The only API that is also served on a WebSocket.
        self.responses = next(
            one for one in self.encoders if isinstance(one, OpenAiResponsesEncoder)
        )

    @property
    def served(self) -> str:
        """All addresses, for the answer to a request that goes to none of them."""
        return ", ".join([*(path for one in self.encoders for path in one.serves), "GET …/models"])

    @property
    def default_models(self) -> list[str]:
        return list(dict.fromkeys(one.default_model for one in self.encoders if one.default_model))

    def endpoint(self, method: str, path: str) -> tuple[ReplyEncoder, Endpoint] | None:
        """Return the encoder for this path and what the request asks for; None: no API is there."""
        path = path.rstrip("/") or "/"
        if method != "POST":
            return None
        for encoder in self.encoders:
            endpoint = encoder.endpoint(path)
            if endpoint is not None:
                return encoder, endpoint
        return None

    def fake_keys(self, ids: IdSource) -> dict[str, str]:
        """Return API keys that look real and open nothing, so that redaction has work to do."""
        keys: dict[str, str] = {}
        for encoder in self.encoders:
            if encoder.key_variable and encoder.key_variable not in keys:
                keys[encoder.key_variable] = encoder.fake_key(ids)
        return keys

    def environ(self, url: str) -> dict[str, str]:
        """Return the variables that point SDKs and agents at a server on loopback."""
        outside = os.environ.get("NO_PROXY") or os.environ.get("no_proxy")
        direct = f"{outside},{_LOOPBACK}" if outside else _LOOPBACK
        variables: dict[str, str] = {}
        for encoder in self.encoders:
            variables.update(encoder.environ(url))
        return {**variables, "NO_PROXY": direct, "no_proxy": direct}

    def models(self, request: ReceivedRequest, names: Sequence[str]) -> Json | None:
        """Return the list of models, or the one model that the path names; None: there is no such model."""
        encoder = next((one for one in self.encoders if one.lists_models(request)), self.responses)
        wanted = request.path.rstrip("/").rpartition("/models")[2].lstrip("/")
        entries = [encoder.model_entry(name) for name in names if wanted in ("", name)]
        if wanted:
            return entries[0] if entries else None
        return encoder.model_list(list(entries))


def is_hello(method: str, path: str) -> bool:
    """Whether a client asks if the server is there, as Claude Code does before its first call."""
    path = path.rstrip("/") or "/"
    return method in ("GET", "HEAD") and (path == "/" or path.endswith("/api/hello"))


def is_model_list(method: str, path: str) -> bool:
    path = path.rstrip("/")
    parent = path.rpartition("/")[0]
    return method in ("GET", "HEAD") and (path.endswith("/models") or parent.endswith("/models"))
